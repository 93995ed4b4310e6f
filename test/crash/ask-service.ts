import { readFileSync } from 'node:fs';
import { readServingUrl, type Child } from '../support/child.ts';

const CLUSTERS = '/api/assisted-install/v2/clusters';

/**
 * Makes, lists and removes records of a service that was just started, and stops it. A record is
 * there when its answer says so; a service that was killed meanwhile answers nothing.
 *
 * @returns sentences about answers that contradict each other
 */
export async function askService(child: Child): Promise<readonly string[]> {
  try {
    return await ask(await readServingUrl(child));
  } catch {
    return []; // it was killed, or could not begin: how it ended is judged
  } finally {
    stop(child);
  }
}

async function ask(url: string): Promise<readonly string[]> {
  const problems: string[] = [];
  const call = async (method: string, path: string, body?: object) => {
    const answer = await fetch(url + path, {
      method,
      headers: { 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (answer.status >= 500 && !text.includes('"code"')) problems.push(`${method}: ${text}`);
    return { status: answer.status, value: (text === '' ? {} : JSON.parse(text)) as unknown };
  };
  const read = async (): Promise<readonly string[]> => {
    const { status, value } = await call('GET', CLUSTERS);
    if (status !== 200) problems.push(`the list of records answers ${status}`);
    return (value as { readonly id: string }[]).map(({ id }) => id);
  };
  const before = await read();
  const body = { name: 'edge', openshift_version: '4.20.3' };
  const made = await call('POST', `${CLUSTERS}/disconnected`, body);
  const { id = '' } = made.value as { readonly id?: string };
  const wanted = made.status === 201 ? [...before, id] : before;
  const found = await read();
  if (found.length < wanted.length) problems.push('a record that was made is not listed');
  for (const each of found) {
    const { status } = await call('GET', `${CLUSTERS}/${each}`);
    if (status !== 200) problems.push(`a record that is listed answers ${status}`);
    const removed = await call('DELETE', `${CLUSTERS}/${each}`);
    if (removed.status >= 500) continue;
    const again = await call('GET', `${CLUSTERS}/${each}`);
    if (again.status !== 404) problems.push(`a removed record answers ${again.status}`);
  }
  return problems;
}

/** Below strace(1), the program is its child. */
function stop({ process: { pid = 0 } }: Child): void {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
    process.kill(Number(children.split(' ')[0]) || pid, 'SIGTERM');
  } catch {
    // it has ended
  }
}
