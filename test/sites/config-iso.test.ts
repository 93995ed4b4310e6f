import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { redactReconfiguration, type JsonValue } from '../../src/sites/config-iso.ts';

const SECRET = 's3cr3t-w0rd';
const show = (manifest: JsonValue): string => JSON.stringify(redactReconfiguration(manifest));

describe('a manifest that is shown', () => {
  it('names cluster, node and networks as they are', () => {
    const manifest = {
      api_version: 1,
      base_domain: 'edge.example',
      cluster_name: 'alpha',
      hostname: 'node',
      machine_networks: ['10.0.0.0/24'],
      node_labels: { rack: 'r1' },
      ssh_key: 'ssh-rsa A',
    };
    expect(redactReconfiguration(manifest)).toEqual(manifest);
  });

  it('keeps only the registries of the pull secret', () => {
    const pull_secret = JSON.stringify({ auths: { 'quay.io': { auth: SECRET, email: 'e' } } });
    expect(redactReconfiguration({ pull_secret })).toEqual({
      pull_secret: '{"auths":{"quay.io":"[redacted]"}}',
    });
    for (const broken of [`{"auths": ${SECRET}`, `"${SECRET}"`, `["${SECRET}"]`, SECRET]) {
      expect(show({ pull_secret: broken })).not.toContain(SECRET);
    }
  });

  it('masks the user of a proxy', () => {
    const proxy = { httpProxy: `http://user:${SECRET}@proxy.example:3128`, noProxy: 'a.example' };
    expect(redactReconfiguration({ proxy })).toEqual({
      proxy: { httpProxy: 'http://proxy.example:3128/', noProxy: 'a.example' },
    });
  });

  it('masks keys and hashes, and shows the certificate and the name of the ingress signer', () => {
    const KubeconfigCryptoRetention = {
      KubeAPICrypto: {
        ServingCrypto: { localhost_signer_private_key: SECRET, future_key: SECRET },
        ClientAuthCrypto: { admin_ca_certificate: 'a certificate' },
      },
      IngresssCrypto: { ingress_ca: SECRET, ingress_certificate_cn: 'ingress-operator@1' },
    };
    const shown = show({ KubeconfigCryptoRetention, kubeadmin_password_hash: SECRET });
    expect(shown).not.toContain(SECRET);
    expect(shown).toContain('a certificate');
    expect(shown).toContain('ingress-operator@1');
  });

  it.each([
    ['in a block', `interfaces:\n- name: eth0\n  802.1x:\n    private-key-password: ${SECRET}\n`],
    [
      'over several lines',
      `interfaces:\n- name: eth0\n  wireguard:\n    private-key: |\n      ${SECRET}\n      x\n`,
    ],
    ['in flow style', `{interfaces: [{name: eth0, libreswan: {psk: ${SECRET}, left: 1.2.3.4}}]}`],
    ['as JSON', `{"interfaces":[{"name":"eth0","libreswan":{"psk":"${SECRET}"}}]}`],
    ['by an alias', `x-password: &p ${SECRET}\ninterfaces:\n- name: eth0\n  psk: *p\n`],
    ['shared', `interfaces:\n- name: eth0\n  preshared-key: ${SECRET}\n`],
    ['in a list', `interfaces:\n- name: eth0\n  secrets:\n  - ${SECRET}\n`],
  ])('masks a secret of the network configuration %s', (_where, raw_nm_state_config) => {
    const shown = show({ raw_nm_state_config });
    expect(shown).not.toContain(SECRET);
    expect(shown).toContain('eth0');
  });

  it('masks the user of a proxy in any form of address', () => {
    for (const httpProxy of [`http://u:${SECRET}@h:1`, `u:${SECRET}@h`, `socks5://${SECRET}@h:1`]) {
      const shown = show({ proxy: { httpProxy } });
      expect(shown).not.toContain(SECRET);
      expect(shown).toContain('h');
    }
  });

  it('masks a private key in the place of a certificate', () => {
    const userCaBundle = `-----BEGIN RSA PRIVATE KEY-----\n${SECRET}\n`;
    expect(show({ additionalTrustBundle: { userCaBundle } })).not.toContain(SECRET);
  });

  it('masks a network configuration that cannot be read', () => {
    for (const text of [
      `psk: "${SECRET}`,
      SECRET,
      `- ${SECRET}`,
      `a: *${SECRET}`,
      `a: ${'['.repeat(50_000)}${SECRET}${']'.repeat(50_000)}`,
    ]) {
      expect(show({ raw_nm_state_config: text })).not.toContain(SECRET);
    }
  });

  it('masks values of any shape that are not known to be public', () => {
    const key = fc
      .string()
      .filter((name) => !/^(__proto__|additionalTrustBundle|proxy|status_proxy)$/.test(name));
    const value = fc.letrec((tie) => ({
      any: fc.oneof(
        { maxDepth: 3 },
        fc.constant(SECRET),
        fc.array(tie('any'), { maxLength: 3 }),
        fc.dictionary(key, tie('any'), { maxKeys: 3 }),
      ),
    })).any;
    fc.assert(
      fc.property(key, value, (name, member) => {
        expect(show({ [`x-${name}`]: member as JsonValue })).not.toContain(SECRET);
      }),
    );
  });
});
