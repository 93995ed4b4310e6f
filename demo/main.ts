import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, readFile, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bootDemo } from './boot.ts';
import { startDemoWorld } from './world.ts';

const SEALIFT = fileURLToPath(new URL('../dist/cli/start.cjs', import.meta.url));

type Step = {
  readonly args: readonly string[];
  /** What a person would do by hand after it. */
  readonly edit?: (directory: string) => Promise<void>;
};

const STEPS: readonly Step[] = [
  { args: ['init'], edit: selectOperators },
  { args: ['validate'] },
  { args: ['plan'] },
  { args: ['build', 'live-iso', '--output', 'live.iso'] },
  { args: ['verify', 'live.iso'] },
  { args: ['inspect', 'live.iso'] },
  { args: ['init', '--template', 'sites', 'field'], edit: nameSecret },
  { args: ['config-iso', 'validate', 'field/sites.csv', '--template', 'field/template'] },
  {
    args: [
      'config-iso',
      'build',
      'field/sites.csv',
      '--template',
      'field/template',
      '--out',
      'isos',
    ],
  },
];

/**
 * The main jobs on a machine that has nothing but Node: a small release, a live ISO, a proof, and the
 * configuration ISOs of two sites.
 */
async function main(): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'sealift-demo-'));
  console.log('Starting a registry on loopback with a small release of the real shape ...');
  const world = await startDemoWorld(directory);
  try {
    for (const { args, edit } of STEPS) {
      console.log(`\n$ sealift ${args.join(' ')}`);
      await runSealift(args, directory, world.env);
      await edit?.(directory);
    }
  } finally {
    await world.close();
  }
  await mkdir(join(directory, 'bin'));
  await symlink(SEALIFT, join(directory, 'bin/sealift'));
  console.log(
    [
      '',
      'Made by the real program from stand-ins: live.iso has the boot structures of a CoreOS live ISO,',
      'and no kernel, so it does not boot. npm run demo -- --boot makes one that does.',
      '',
      'What to look at:',
      `  cd ${directory}`,
      '  PATH="$PWD/bin:$PATH"',
      '  sealift ls live.iso /registry           the files of the registry',
      '  sealift ignition show live.iso          what the hosts will apply',
      '  sealift registry serve live.iso         the payload, straight out of the ISO',
      '  less live.iso.report.json               what was built from what',
      '  less isos/sites.json                    the configuration ISOs of two sites',
    ].join('\n'),
  );
}

/** Takes the comment signs off the example of operators, and of additional images. */
function selectOperators(directory: string): Promise<void> {
  console.log('\nTaking the comment signs off "operators" and "additionalImages" ...');
  return editFile(join(directory, 'appliance-config.yaml'), (text) =>
    text.replaceAll(/^# (?:operators|additionalImages):\n(?:# .*\n)+/gm, (lines) =>
      lines.replaceAll(/^# /gm, ''),
    ),
  );
}

/** What the next step of `init` asks for. */
function nameSecret(directory: string): Promise<void> {
  console.log('\nNaming the pull secret of the sites ...');
  return editFile(join(directory, 'field/template/install-config.yaml'), (text) =>
    text.replace(/^pullSecret: .*$/m, 'pullSecret: file:../../pull-secret.json'),
  );
}

const editFile = async (path: string, edit: (text: string) => string): Promise<void> =>
  writeFile(path, edit(await readFile(path, 'utf8')));

async function runSealift(
  args: readonly string[],
  cwd: string,
  settings: Readonly<Record<string, string>>,
): Promise<void> {
  const env = { ...process.env, ...settings };
  const child = spawn(process.execPath, [SEALIFT, ...args], { cwd, stdio: 'inherit', env });
  const code = await new Promise<number | null>((resolve) => child.on('exit', resolve));
  if (code !== 0) throw new Error(`sealift ${args.join(' ')} ended with ${code ?? 'a signal'}`);
}

if (process.argv.includes('--boot')) await bootDemo();
else await main();
