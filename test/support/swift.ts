import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { execa } from 'execa';
import { freePort } from './local-http.ts';

/** An S3 service on loopback: OpenStack Swift with its `s3api`, one device, four servers. */
export type Swift = {
  readonly endpoint: string;
  /** What a client of the service needs, as variables of the environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly stop: () => Promise<void>;
};

const KINDS = ['account', 'container', 'object'] as const;

/** Started once for all tests of object stores: it takes seconds. */
export async function startSwift(directory: string): Promise<Swift> {
  const [proxy, memcached, ...storage] = await Promise.all([0, 0, ...KINDS].map(() => freePort()));
  await mkdir(join(directory, 'devices/d1'), { recursive: true });
  await writeFile(
    join(directory, 'swift.conf'),
    '[swift-hash]\nswift_hash_path_prefix = a\nswift_hash_path_suffix = b\n[storage-policy:0]\nname = one\ndefault = yes\n',
  );
  await execa('/usr/bin/python3', ['-c', MAKE_RINGS, directory, ...storage.map(String)]);
  for (const [index, kind] of KINDS.entries()) {
    const path = join(directory, `${kind}-server.conf`);
    await writeFile(path, formatServer(directory, kind, storage[index] ?? 0));
  }
  await writeFile(
    join(directory, 'proxy-server.conf'),
    formatProxy({ directory, proxy: proxy ?? 0, memcached: memcached ?? 0 }),
  );
  const children = [
    start('memcached', ['-u', 'root', '-l', '127.0.0.1', '-p', String(memcached), '-m', '16']),
    ...[...KINDS, 'proxy'].map((kind) =>
      start(`swift-${kind}-server`, [join(directory, `${kind}-server.conf`)]),
    ),
  ];
  const endpoint = `http://127.0.0.1:${proxy ?? 0}`;
  await waitUntil(children, () => answers(`${endpoint}/info`));
  return {
    endpoint,
    env: {
      AWS_ENDPOINT_URL_S3: endpoint,
      AWS_REGION: 'us-east-1',
      AWS_ACCESS_KEY_ID: 'test:tester',
      AWS_SECRET_ACCESS_KEY: 'testing',
    },
    async stop() {
      await Promise.all(children.map(end));
    },
  };
}

/** As `swift-ring-builder` makes them, in one process. */
const MAKE_RINGS = `
import sys
from swift.common.ring import RingBuilder
directory, *ports = sys.argv[1:]
for kind, port in zip(['account', 'container', 'object'], ports):
    builder = RingBuilder(6, 1, 1)
    builder.add_dev({'region': 1, 'zone': 1, 'ip': '127.0.0.1', 'port': int(port), 'device': 'd1',
        'replication_ip': '127.0.0.1', 'replication_port': int(port), 'weight': 100.0, 'meta': ''})
    builder.rebalance()
    builder.get_ring().save('%s/%s.ring.gz' % (directory, kind))
`;

const formatServer = (directory: string, kind: string, port: number): string =>
  [
    ...serverLines(directory, port),
    `devices = ${directory}/devices`,
    'mount_check = false',
    `[pipeline:main]\npipeline = ${kind}-server`,
    `[app:${kind}-server]\nuse = egg:swift#${kind}`,
  ].join('\n');

const serverLines = (directory: string, port: number): readonly string[] => [
  '[DEFAULT]',
  `bind_ip = 127.0.0.1\nbind_port = ${port}`,
  'workers = 0\nuser = root',
  `swift_dir = ${directory}`,
];

const formatProxy = (of: { directory: string; proxy: number; memcached: number }): string =>
  [
    ...serverLines(of.directory, of.proxy),
    '[pipeline:main]\npipeline = catch_errors cache s3api tempauth bulk slo dlo proxy-server',
    '[app:proxy-server]\nuse = egg:swift#proxy\naccount_autocreate = true',
    '[filter:tempauth]\nuse = egg:swift#tempauth\nuser_test_tester = testing .admin',
    '[filter:s3api]\nuse = egg:swift#s3api\ns3_acl = false',
    `[filter:cache]\nuse = egg:swift#memcache\nmemcache_servers = 127.0.0.1:${of.memcached}`,
    ...['catch_errors', 'bulk', 'slo', 'dlo'].map(
      (name) => `[filter:${name}]\nuse = egg:swift#${name}`,
    ),
  ].join('\n');

const start = (name: string, args: readonly string[]): ChildProcess =>
  spawn(name, args, { stdio: 'ignore' });

/** Resolves when it answers; a server that ended is an error. */
async function waitUntil(
  children: readonly ChildProcess[],
  isReady: () => Promise<boolean>,
): Promise<void> {
  while (!(await isReady())) {
    const ended = children.find(({ exitCode }) => exitCode !== null);
    if (ended) throw new Error(`${ended.spawnfile} ended with ${ended.exitCode}`);
    await sleep(50);
  }
}

const answers = (url: string): Promise<boolean> =>
  fetch(url).then(
    ({ ok }) => ok,
    () => false,
  );

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const closed = once(child, 'exit');
  child.kill('SIGKILL');
  await closed;
}
