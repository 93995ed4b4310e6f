/* A first process that is killed as soon as its worker has its settings. */
import cluster from 'node:cluster';

const [, , exec] = process.argv;
const listener = { host: '127.0.0.1', port: 0, isTls: false };
const settings = {
  inner: '/nowhere',
  listeners: [listener],
  connections: 8,
  each: 8,
  tenant: 8,
  proxies: [],
  part: 1,
};
cluster.setupPrimary({ exec, args: [], execArgv: [] });
const worker = cluster.fork();
worker.on('message', () => {
  worker.send({ type: 'start', settings }, () => process.kill(process.pid, 'SIGKILL'));
});
