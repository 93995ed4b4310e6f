import { describe, expect, it } from 'vitest';
import { textFile, type Unit } from '../../../src/ignition/index.ts';
import { renderBootstrapIgnition } from '../../../src/openshift/node/bootstrap.ts';
import { renderInstallIgnition } from '../../../src/openshift/node/install.ts';
import { bootstrapInput, findFile } from '../../support/node-configs.ts';
import { hasThrowAwaySystemd, runBelowSystemd } from '../../support/throw-away-systemd.ts';
import { requireTool } from '../../support/tools.ts';

const runs = describe.skipIf(!hasThrowAwaySystemd() || !requireTool('jq'));

const program = (name: string, lines: string) =>
  textFile(`/usr/local/bin/${name}`, `#!/usr/bin/env bash\n${lines}\n`, 0o755);

runs('an installed host that was the rendezvous host', () => {
  const config = renderInstallIgnition({ ...bootstrapInput, stopLocalRegistry: true });
  const names = [
    'set-installed-node-zero.service',
    'node-zero-installed.path',
    'node-zero-installed.target',
    'apply-operator-crs.service',
    'create-pinned-image-sets.service',
    'drop-registry-mirrors.service',
  ];
  const units = (config.systemd?.units ?? []).filter(({ name }) => names.includes(name));
  const scripts = (config.storage?.files ?? []).filter(({ path }) => path.endsWith('.sh'));
  const ip = program(
    'ip',
    `touch /tmp/searched
    [[ -e /tmp/address ]] && local=192.0.2.10 || local=192.0.2.99
    echo '[{"address":"52:54:00:00:00:01","addr_info":[{"local":"'$local'"}]}]'`,
  );
  const oc = program(
    'oc',
    `case "$1 $2" in
      "get clusterversion") touch "/tmp/asked"; echo True ;;
      "get --filename") exit 1 ;;
      "get customresourcedefinition"*) echo True v1 ;;
      "get machineconfig") ;;
      apply* | label*) echo "$*" >>/tmp/changes ;;
    esac`,
  );
  const files = [
    ...scripts,
    ...[ip, oc],
    textFile('/etc/assisted/rendezvous-host.env', 'NODE_ZERO_IP=192.0.2.10\n', 0o644),
    textFile('/etc/assisted/extra-manifests/post-installation/index', '- a.yaml\n', 0o600),
    textFile(
      '/etc/kubernetes/static-pod-resources/kube-apiserver-certs/secrets/node-kubeconfigs/localhost.kubeconfig',
      'apiVersion: v1\n',
      0o600,
    ),
    textFile('/etc/crio/crio.conf.d/.keep', '', 0o644),
    textFile('/etc/assisted/pinned-image-sets/master.yaml', 'apiVersion: v1\n', 0o644),
  ];
  const boot = `
    sed -i 's/interval=10/interval=0.1/' /usr/local/bin/set-installed-node-zero.sh
    systemctl --user start --no-block set-installed-node-zero.service node-zero-installed.path`;

  it('changes the cluster as soon as it has its address, not only at its next boot', async () => {
    const { exitCode, stdout, stderr } = await runBelowSystemd(
      units,
      files,
      `${boot}
      await '[[ -e /tmp/searched ]]'
      systemctl --user is-active node-zero-installed.target
      [[ -e /tmp/asked ]] && echo "too early"
      touch /tmp/address
      await 'grep -qs "apply.*a.yaml" /tmp/changes'
      await 'grep -qsx -- "apply --filename -" /tmp/changes'
      touch /etc/crio/crio.conf.d/50-pinned-images
      sed -i 's/interval=60/interval=0.1/' /usr/local/bin/drop-registry-mirrors.sh
      systemctl --user restart drop-registry-mirrors.service
      await 'grep -qs "label machineconfig 99-worker" /tmp/changes'
      cat /etc/assisted/node0; LC_ALL=C sort --unique /tmp/changes`,
    );
    expect(exitCode, stdout + stderr).toBe(0);
    expect(stdout.split('\n')).toEqual([
      'inactive',
      '# This host was the rendezvous host of the installation.',
      'BOOTSTRAP_HOST_MAC=52:54:00:00:00:01',
      'apply --filename -',
      'apply --filename /etc/assisted/extra-manifests/post-installation/a.yaml',
      'label machineconfig 99-master-generated-registries machineconfiguration.openshift.io/role-',
      'label machineconfig 99-worker-generated-registries machineconfiguration.openshift.io/role-',
      '',
    ]);
  });

  it('changes the cluster at a later boot without a check of its address', async () => {
    const { exitCode, stdout, stderr } = await runBelowSystemd(
      units,
      [...files, textFile('/etc/assisted/node0', 'BOOTSTRAP_HOST_MAC=x\n', 0o644)],
      `${boot}
      await 'grep -qs "apply.*a.yaml" /tmp/changes'
      [[ -e /tmp/searched ]] || echo "no search"`,
    );
    expect(exitCode, stdout + stderr).toBe(0);
    expect(stdout).toBe('no search\n');
  });
});

runs('a host that boots from a medium', () => {
  const config = renderBootstrapIgnition(bootstrapInput);
  const dropin = config.systemd?.units?.find(({ name }) => name === 'agent.service');
  /** As the installer has it, with a program that says under which name it registers. */
  const agent: Unit = {
    name: 'agent.service',
    contents: `[Service]
Type=simple
Restart=always
RestartSec=0.2
StartLimitIntervalSec=0
EnvironmentFile=/etc/assisted/rendezvous-host.env
ExecStart=/usr/local/bin/start-agent.sh
`,
    ...(dropin?.dropins && { dropins: dropin.dropins }),
  };
  const script = findFile(config, '/usr/local/bin/apply-hostnames.sh');
  const files = [
    ...(script ? [script] : []),
    program('start-agent.sh', 'echo "registers as $(</tmp/name)" >>/tmp/log; exec sleep 600'),
    program('hostnamectl', '[[ "$1" == set-hostname ]] && echo "$2" >/tmp/name || cat /tmp/name'),
    program(
      'ip',
      `echo '[{"address":"00:00:00:00:00:00"},{"address":"52:54:00:AA:00:01","permaddr":"52:54:00:AA:00:02"}]'`,
    ),
  ];
  /** The loader writes the environment of the rendezvous host last. */
  const load = (mac: string): string => `
    mkdir --parents /etc/assisted/hostnames
    printf host-other >/etc/assisted/hostnames/52:54:00:bb:00:01
    printf host-7 >/etc/assisted/hostnames/${mac}
    echo A=1 >/etc/assisted/rendezvous-host.env`;

  it.each(['52:54:00:aa:00:01', '52:54:00:aa:00:02'])(
    'registers with the name that the configuration image has for its interface %s',
    async (mac) => {
      const { exitCode, stdout, stderr } = await runBelowSystemd(
        [agent],
        files,
        `echo localhost >/tmp/name
        systemctl --user start --no-block agent.service
        await '(($(systemctl --user show --property=NRestarts --value agent.service) > 1))'
        ls /etc/assisted/rendezvous-host.env /tmp/log 2>/dev/null
        ${load(mac)}
        await '[[ -s /tmp/log ]]'
        cat /tmp/log`,
      );
      expect(exitCode, stdout + stderr).toBe(0);
      expect(stdout).toBe('registers as host-7\n');
    },
  );

  it('registers with its current name if the configuration image names none of its interfaces', async () => {
    const { exitCode, stdout, stderr } = await runBelowSystemd(
      [agent],
      files,
      `echo from-dhcp >/tmp/name
      ${load('52:54:00:cc:00:01')}
      systemctl --user start --no-block agent.service
      await '[[ -s /tmp/log ]]'
      cat /tmp/log`,
    );
    expect(exitCode, stdout + stderr).toBe(0);
    expect(stdout).toBe('registers as from-dhcp\n');
  });

  it('registers even if its name cannot be set, so that a person can see it', async () => {
    const { stdout } = await runBelowSystemd(
      [agent],
      [...files, program('hostnamectl', '[[ "$1" == set-hostname ]] && exit 1; cat /tmp/name')],
      `echo localhost >/tmp/name
      ${load('52:54:00:aa:00:01')}
      systemctl --user start --no-block agent.service
      await '[[ -s /tmp/log ]]'
      cat /tmp/log`,
    );
    expect(stdout).toBe('registers as localhost\n');
  });
});
