import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { textFile } from '../../../src/ignition/config.ts';
import { RENDEZVOUS_PLACEHOLDER } from '../../../src/openshift/node/install.ts';
import { renderNodeRegistry } from '../../../src/openshift/node/registry.ts';
import { renderScript } from '../../../src/openshift/node/registry.ts';
import { bootstrapInput } from '../../support/node-configs.ts';
import { hasThrowAwayRoot, runInThrowAwayRoot } from '../../support/throw-away-root.ts';
import { requireTool } from '../../support/tools.ts';

const runs = describe.skipIf(
  !hasThrowAwayRoot() || !requireTool('openssl') || !requireTool('jq') || !requireTool('curl'),
);

const MEDIUM = `
mkdir -p /run/media/iso && mount -t tmpfs tmpfs /run/media/iso
mkdir -p /run/media/iso/registry/images/registry /run/media/iso/registry/docker/registry/v2/blobs
echo '{}' > /run/media/iso/registry/images/registry/manifest.json
`;

/** Says what it was asked, pulls one image, and has openssl in its only image. */
const PODMAN = textFile(
  '/usr/local/bin/podman',
  `#!/usr/bin/env bash
echo "podman $*" >>/tmp/podman.log
case "$1 $2" in
  "image exists") [[ -e /tmp/loaded ]] ;;
  "pull --quiet") echo 0123abcd ;;
  "tag 0123abcd") touch /tmp/loaded ;;
  "run --rm")
    for word; do case "$word" in --volume=*) work="\${word#--volume=}"; work="\${work%:/work}" ;; esac; done
    while [[ "$1" != req ]]; do shift; done
    exec /opt/openssl "\${@//\\/work/$work}" ;;
esac
`,
  0o755,
);

const live = renderNodeRegistry({
  image: bootstrapInput.registryImage,
  interactive: false,
  stage: 'live',
}).files;

runs('mount-agent-data.sh', () => {
  it('shows the registry of the medium read-only, however often it is run', async () => {
    const { stdout, exitCode } = await runInThrowAwayRoot(
      live,
      `${MEDIUM}
      mount-agent-data.sh && mount-agent-data.sh
      grep -c ' /mnt/agentdata ' /proc/mounts
      touch /mnt/agentdata/x 2>&1 || true
      ls /mnt/agentdata`,
    );
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/\n1\n.*Read-only file system\ndocker\nimages\n$/);
  });

  it('replaces a link of an earlier version by a mount', async () => {
    const { stdout } = await runInThrowAwayRoot(
      live,
      `${MEDIUM} ln -s /var/tmp /mnt/agentdata; mount-agent-data.sh; stat -c %F /mnt/agentdata`,
    );
    expect(stdout).toMatch(/\ndirectory\n$/);
  });

  it.each([
    ['rm /run/media/iso/registry/images/registry/manifest.json', 'manifest.json is missing'],
    ['rmdir /run/media/iso/registry/docker/registry/v2/blobs', 'v2 is empty'],
    ['rm -r /run/media/iso/registry/docker', 'v2 is not a directory'],
  ])('refuses a medium after %s', async (damage, message) => {
    const { stderr, exitCode } = await runInThrowAwayRoot(
      live,
      `${MEDIUM} ${damage}; mount-agent-data.sh`,
    );
    expect(exitCode).toBe(1);
    expect(stderr).toContain(message);
  });

  it.each([
    ['', 'no medium at /run/media/iso'],
    [
      'mkdir -p /run/media/iso; mount -t tmpfs tmpfs /run/media/iso;',
      'has no directory registry: attach the appliance ISO, not another one',
    ],
  ])('gives up after its limit without the medium', async (mounts, message) => {
    const { stderr, exitCode } = await runInThrowAwayRoot(
      live,
      `${mounts} sed -i 's/wait_limit=600/wait_limit=0/' /usr/local/bin/mount-agent-data.sh
      mount-agent-data.sh`,
    );
    expect(exitCode).toBe(1);
    expect(stderr).toContain(message);
  });
});

runs('setup-local-registry.sh', () => {
  const show = `
    openssl x509 -in /etc/iri-registry/certs/tls.crt -noout -subject -ext subjectAltName
    stat -c '%a %n' /etc/iri-registry/certs/*
    cmp /etc/iri-registry/certs/tls.crt \\
      /etc/containers/certs.d/registry.appliance.openshift.com:22625/ca.crt
    grep -c registry.appliance /etc/hosts; ls /etc/iri-registry`;

  it('makes a certificate once, trusts it and names the host', async () => {
    const { stdout, exitCode } = await runInThrowAwayRoot(
      [...live, PODMAN],
      `${MEDIUM} setup-local-registry.sh >/dev/null 2>&1; sha256sum /etc/iri-registry/certs/*
      setup-local-registry.sh >/dev/null 2>&1; sha256sum /etc/iri-registry/certs/*
      ${show}`,
    );
    expect(exitCode).toBe(0);
    const lines = stdout.trimEnd().split('\n');
    expect(lines.slice(0, 2)).toEqual(lines.slice(2, 4));
    expect(stdout).toContain('CN = registry.appliance.openshift.com');
    expect(stdout).toContain('DNS:registry.appliance.openshift.com, DNS:localhost');
    expect(stdout).toContain('600 /etc/iri-registry/certs/tls.key');
    expect(stdout).toContain('644 /etc/iri-registry/certs/tls.crt');
    expect(stdout).toMatch(/\n1\ncerts\n$/);
  });

  it('makes the certificate inside the registry image if the host has no openssl', async () => {
    const { stdout, exitCode } = await runInThrowAwayRoot(
      [...live, PODMAN],
      `${MEDIUM} mv "$(command -v openssl)" /opt/openssl; hash -r
      setup-local-registry.sh >/dev/null 2>&1 || exit 1
      cp /opt/openssl /usr/bin/openssl
      grep -o 'run .*openssl' /tmp/podman.log | head -1 | sed 's/certs[.][^:]*/certs.X/'
      ${show}`,
    );
    expect(exitCode).toBe(0);
    expect(stdout).toContain(
      'run --rm --pull=never --network=none --user=0 --security-opt=label=disable ' +
        '--volume=/etc/iri-registry/certs.X:/work --entrypoint=openssl',
    );
    expect(stdout).toContain('CN = registry.appliance.openshift.com');
  });

  it('fails when podman loads nothing', async () => {
    const { stderr, exitCode } = await runInThrowAwayRoot(
      [...live, textFile('/usr/local/bin/podman', '#!/bin/sh\n[ "$1" = pull ]\n', 0o755)],
      `${MEDIUM} setup-local-registry.sh`,
    );
    expect(exitCode).toBe(1);
    expect(stderr).toContain('podman loaded nothing from /mnt/agentdata/images/registry');
  });
});

runs('set-env-files.sh', () => {
  const holes = {
    'registry': 'localhost:22625',
    'release-image': 'quay.io/r@sha256:aa',
    'release-images': '[{"url":"a&b|c"}]',
    'os-images': '[]',
  };
  const files = [
    renderScript('set-env-files.sh', { ...holes, 'disable-image-policy': 'no' }),
    textFile('/etc/assisted/cluster-image-set.yaml', 'ours\n', 0o644),
    textFile('/etc/assisted/manifests/cluster-image-set.yaml', 'installer\n', 0o600),
    textFile('/usr/local/share/assisted-service/images.env', 'OS_IMAGES=[x]\n', 0o600),
    textFile(
      '/usr/local/share/assisted-service/assisted-service.env',
      'A=1\nPUBLIC_CONTAINER_REGISTRIES=quay.io\nRELEASE_IMAGES=old\nB=2\n',
      0o640,
    ),
  ];

  it('writes the same files however often it is run', async () => {
    const { stdout, exitCode } = await runInThrowAwayRoot(
      files,
      `set -e; cd /usr/local/share/assisted-service
      set-env-files.sh; sha256sum *; set-env-files.sh; sha256sum *
      cat assisted-service.env images.env /etc/assisted/manifests/cluster-image-set.yaml
      stat -c %a assisted-service.env; ls | wc -l`,
    );
    expect(exitCode).toBe(0);
    const lines = stdout.split('\n');
    expect(lines.slice(0, 2)).toEqual(lines.slice(2, 4));
    expect(lines.slice(4).join('\n')).toBe(
      `A=1
B=2
PUBLIC_CONTAINER_REGISTRIES=quay.io,localhost:22625
RELEASE_IMAGES=[{"url":"a&b|c"}]
OPENSHIFT_INSTALL_RELEASE_IMAGE_MIRROR=quay.io/r@sha256:aa
OS_IMAGES=[]
ours
640
2
`,
    );
  });

  it('switches off the image policy in the service, once, if the medium does so', async () => {
    const off = renderScript('set-env-files.sh', { ...holes, 'disable-image-policy': 'yes' });
    const { stdout, exitCode } = await runInThrowAwayRoot(
      [...files.slice(1), off],
      `set-env-files.sh && set-env-files.sh && grep IMAGE_POLICY -r /usr/local/share/assisted-service`,
    );
    expect(exitCode).toBe(0);
    expect(stdout).toBe(
      '/usr/local/share/assisted-service/assisted-service.env:OPENSHIFT_INSTALL_EXPERIMENTAL_DISABLE_IMAGE_POLICY=true\n',
    );
  });
});

runs('reconfigure-local-registry-iri-tls.sh', () => {
  const files = [
    renderScript('reconfigure-local-registry-iri-tls.sh'),
    textFile('/usr/local/bin/systemctl', '#!/bin/sh\necho systemctl "$@"\n', 0o755),
    textFile('/opt/openshift/tls/internal-release-image.crt', 'CRT', 0o644),
  ];

  it('uses the certificate and the key when both files exist', async () => {
    const { stdout, exitCode } = await runInThrowAwayRoot(
      files,
      `(sleep 0.3; echo KEY >/opt/openshift/tls/internal-release-image.key) &
      sed -i 's/sleep 2/sleep 0.2/' /usr/local/bin/reconfigure-local-registry-iri-tls.sh
      reconfigure-local-registry-iri-tls.sh; stat -c '%a %n' /etc/iri-registry/certs/*`,
    );
    expect(exitCode).toBe(0);
    expect(stdout).toBe(`systemctl restart start-local-registry.service
systemctl disable --now watch-iri-tls-certs.path
644 /etc/iri-registry/certs/tls.crt
600 /etc/iri-registry/certs/tls.key
`);
  });

  it('fails when the key never comes', async () => {
    const { stderr, exitCode } = await runInThrowAwayRoot(
      files,
      `sed -i 's/wait_limit=120/wait_limit=0/' /usr/local/bin/reconfigure-local-registry-iri-tls.sh
      reconfigure-local-registry-iri-tls.sh`,
    );
    expect(exitCode).toBe(1);
    expect(stderr).toContain('are not both there after 0 s');
  });
});

runs('set-installed-node-zero.sh', () => {
  const ip = (address: string): string =>
    `#!/bin/sh\necho '[{"address":"52:54:00:00:00:01","addr_info":[{"local":"${address}"}]}]'\n`;

  it('marks the host that has the address of the rendezvous host', async () => {
    const { stdout, exitCode } = await runInThrowAwayRoot(
      [
        renderScript('set-installed-node-zero.sh'),
        textFile('/etc/assisted/rendezvous-host.env', '#\nNODE_ZERO_IP=192.0.2.10\n', 0o644),
        textFile('/usr/local/bin/ip', ip('192.0.2.10'), 0o755),
      ],
      'set-installed-node-zero.sh && cat /etc/assisted/node0',
    );
    expect(exitCode).toBe(0);
    expect(stdout).toContain('BOOTSTRAP_HOST_MAC=52:54:00:00:00:01');
  });
});

type Call = { readonly method: string; readonly url: string; readonly body: string };

runs('update-hosts.sh', () => {
  let server: Server | undefined;
  afterEach(() => server?.close());

  /** An assisted service that refuses the first manifest once and moves on when a host is done. */
  async function serve(): Promise<{ calls: Call[]; url: string; tokens: Set<unknown> }> {
    const calls: Call[] = [];
    const tokens = new Set<unknown>();
    let refusals = 1;
    server = createServer((request, response) => {
      let body = '';
      request.on('data', (chunk) => (body += String(chunk)));
      request.on('end', () => {
        const { method = '', url = '' } = request;
        tokens.add(request.headers.authorization);
        const path = url.replace('/api/assisted-install/v2', '');
        if (method !== 'GET') calls.push({ method, url: path, body });
        if (method === 'POST' && refusals-- > 0) response.statusCode = 500;
        const isDone = calls.some((call) => call.method === 'PATCH');
        const answers: Record<string, unknown> = {
          '/clusters': [{ id: 'c1' }],
          '/clusters/c1': { status: isDone ? 'installing' : 'ready' },
          '/infra-envs/e1/hosts': [{ id: 'h1' }, { id: 'h2' }],
        };
        response.end(JSON.stringify(answers[path] ?? {}));
      });
    });
    await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    return { calls, tokens, url: `http://127.0.0.1:${port}/` };
  }

  it('gives each host its configuration with the address of the rendezvous host', async () => {
    const { calls, url, tokens } = await serve();
    const rendezvous = 'NODE_ZERO_IP=192.0.2.10\n';
    const install = JSON.stringify(
      textFile('/etc/assisted/rendezvous-host.env', RENDEZVOUS_PLACEHOLDER, 0o644),
    );
    const { exitCode, stdout, stderr } = await runInThrowAwayRoot(
      [
        renderScript('update-hosts.sh', {
          interactive: 'yes',
          placeholder: RENDEZVOUS_PLACEHOLDER,
        }),
        textFile('/etc/assisted/install.ign', install, 0o600),
        textFile('/etc/assisted/rendezvous-host.env', rendezvous, 0o644),
        textFile('/etc/assisted/extra-manifests/a.yaml', 'kind: A\n', 0o644),
      ],
      `sed -i 's/sleep [0-9]*/sleep 0.1/' /usr/local/bin/update-hosts.sh
      export SERVICE_BASE_URL=${url} INFRA_ENV_ID=e1 USER_AUTH_TOKEN=t0ken
      update-hosts.sh; status=$?; ls /tmp; exit $status`,
    );
    expect(stderr).toBe('update hosts: POST /clusters/c1/manifests was answered with 500\n');
    expect(exitCode).toBe(0);
    expect(stdout).toContain('the cluster is installing\n');
    expect([...tokens]).toEqual(['t0ken']);
    expect(calls.map(({ method, url: path }) => `${method} ${path}`)).toEqual([
      'POST /clusters/c1/manifests',
      'POST /clusters/c1/manifests',
      'PATCH /infra-envs/e1/hosts/h1/ignition',
      'PATCH /infra-envs/e1/hosts/h2/ignition',
    ]);
    expect(JSON.parse(calls[1]?.body ?? '')).toEqual({
      folder: 'openshift',
      file_name: 'a.yaml',
      content: Buffer.from('kind: A\n').toString('base64'),
    });
    const { config } = JSON.parse(calls[2]?.body ?? '') as { config: string };
    expect(config).toBe(
      JSON.stringify(textFile('/etc/assisted/rendezvous-host.env', rendezvous, 0o644)),
    );
  });
});
