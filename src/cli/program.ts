import { Command, CommanderError, Option } from 'commander';
import { explainSystemError } from '../base/disk/disk-errors.ts';
import { explainLoss } from '../base/disk/work-directory.ts';
import { InterruptedError } from '../base/errors.ts';
import { readVersion } from '../base/program.ts';
import { startTimer, untilAborted, type Timer } from '../base/wait.ts';
import { registerBuild } from './build.ts';
import { registerCache } from './cache.ts';
import { registerCatalog } from './catalog.ts';
import { registerCompletion, registerVersion } from './completion.ts';
import { registerConfigIso } from './config-iso/build.ts';
import { registerConfig, registerValidate } from './config.ts';
import { registerExplain, registerHelp } from './documents.ts';
import type { CliHost, LogOptions } from './host.ts';
import { registerImportImageset, registerInit } from './init.ts';
import { registerLock, registerReproduce } from './lock.ts';
import { registerPull, registerPush } from './medium/artifact.ts';
import { registerCustomize } from './medium/customize.ts';
import { registerApply, registerDelta } from './medium/delta.ts';
import { registerDiff } from './medium/diff.ts';
import { registerExtract } from './medium/extract.ts';
import { registerCat, registerLs, registerIgnition, registerInspect } from './medium/inspect.ts';
import { registerRehearse } from './medium/rehearse.ts';
import { registerRepair } from './medium/repair.ts';
import { registerVerify } from './medium/verify.ts';
import { registerPlan } from './plan.ts';
import type { ProductTable } from './product.ts';
import { PRODUCTS } from './products.ts';
import { registerAudit } from './serve/audit.ts';
import { registerRegistry } from './serve/registry.ts';
import { registerServe } from './serve/serve.ts';
import { registerToken } from './serve/token.ts';
import { overrideNodeSettings } from './node-settings.ts';
import { printError, toUsageError } from './terminal/errors.ts';
import { createRunLog } from './terminal/log.ts';
import { createContinuation } from './terminal/progress.ts';
import {
  showEvent,
  showMessage,
  writeEvent,
  writeMessage,
  writeResult,
} from './terminal/output.ts';
import { admitVariables, createOptionVariables } from './variables.ts';
import { registerResources, registerWhy } from './why.ts';

/*
 * The command line. Arguments and a CliHost come in; results go to stdout, messages to stderr, and an exit
 * code leaves. Commands read options and files, call the other rooms and format what they return. No other
 * room may import this one, and no command may use the process except through the CliHost.
 */

const EXIT_USAGE = 2;

/** All commands, in the order of help; each is a file that exports `register<Name>(program, host)`. */
const REGISTER: readonly ((program: Command, host: CliHost, products: ProductTable) => void)[] = [
  registerInit,
  registerImportImageset,
  registerValidate,
  registerConfig,
  registerPlan,
  registerBuild,
  registerLock,
  registerReproduce,
  registerWhy,
  registerResources,
  registerCatalog,
  registerConfigIso,
  registerInspect,
  registerDiff,
  registerLs,
  registerCat,
  registerIgnition,
  registerCustomize,
  registerExtract,
  registerVerify,
  registerRehearse,
  registerRepair,
  registerDelta,
  registerApply,
  registerPush,
  registerPull,
  registerRegistry,
  registerServe,
  registerToken,
  registerAudit,
  registerCache,
  registerExplain,
  registerHelp,
  registerCompletion,
  registerVersion,
];

/** No part of the command line ends the process. `isJson`: only JSON goes to stderr, not even help. */
export function createProgram(host: CliHost, isJson = false, products = PRODUCTS): Command {
  const program = new Command('sealift')
    .description('builds OpenShift appliance media')
    .version(readVersion(), '--version', 'print the version')
    .helpOption('-h, --help', 'print help')
    .showSuggestionAfterError()
    .configureOutput({
      writeOut: (text) => void writeResult(host, text).catch(() => undefined),
      writeErr: (text) => {
        if (!isJson) writeMessage(host, text);
      },
      outputError: () => undefined, // the error is thrown as well
    })
    .exitOverride()
    .addHelpText(
      'after',
      '\nExample:\n  $ sealift init && sealift validate && sealift build\n\nExit codes: 0 done, ' +
        '1 bug, 2 usage, 3 configuration, 4 registry or network, 5 integrity,\n6 external tool, ' +
        '7 disk, 8 differences found, 9 imported with losses, 10 not provable, 11 not signed,\n' +
        '12 not trusted, 130 and 143 interrupted, 141 the reader of the result went away.\n' +
        '\nGuides: sealift help. The code of an error: sealift explain CODE.\n' +
        'Every option has a variable, as SEALIFT_WORK_DIR for --work-dir: sealift help cli.',
    );
  for (const register of REGISTER) register(program, host, products);
  addLogOptions(program, host);
  return program;
}

/** Adds the options that every command has, before or after its name. */
export function addLogOptions(program: Command, host: CliHost): void {
  const create = (): readonly Option[] => [
    new Option('-q, --quiet', 'print results and errors only'),
    new Option('-v, --verbose', 'also print why stages run, every request, and every retry'),
    new Option('--log-file <file>', 'append every event to a file, as lines of JSON'),
  ];
  for (const option of create()) program.addOption(option);
  const addBelow = (parent: Command): void => {
    for (const command of parent.commands) {
      for (const option of create()) command.addOption(option.hideHelp());
      command.configureHelp({ showGlobalOptions: true });
      addBelow(command);
    }
  };
  addBelow(program);
  program.hook('preAction', async (_program, action) => {
    const started = { type: 'run-started', version: readVersion(), command: nameOf(action) };
    const taken = host.variables?.take(action) ?? [];
    await host.log?.open(action.optsWithGlobals<LogOptions>(), host.cwd);
    host.log?.record(started);
    if (taken.length > 0) showVariables(host, taken);
  });
}

/** Names the variables that set options: those that relax a check even with `--quiet`. */
function showVariables(host: CliHost, names: readonly string[]): void {
  const isJson = wantsJson(host.args ?? [], host.env);
  warnOfEnvironment(host, host.variables?.warnings() ?? [], isJson);
  const message = `note: options from the environment: ${names.join(', ')}`;
  if (isJson) writeEvent(host, { type: 'message', message });
  else writeMessage(host, `${message}\n`);
}

const nameOf = (command: Command): string =>
  command.parent?.parent ? `${nameOf(command.parent)} ${command.name()}` : command.name();

/** Runs a command line without the program's own name and returns the exit code. */
export async function runProgram(
  args: readonly string[],
  given: CliHost,
  products = PRODUCTS,
): Promise<number> {
  const log = createRunLog(given, (message) => {
    showMessage(given, `warning: ${message}\n`);
  });
  let grace = GRACE;
  const host = {
    ...given,
    args,
    log,
    environment: [],
    continuation: createContinuation(),
    variables: createOptionVariables(given.env),
    allowGrace(wanted: number) {
      grace = wanted;
    },
  };
  const started = given.now();
  const exitCode = await runCommand(host, products, () => grace);
  log.record({ type: 'run-done', exitCode, milliseconds: given.now() - started });
  await log.close();
  return exitCode;
}

/** Prints warnings about the environment, which reports repeat. */
function warnOfEnvironment(host: CliHost, warnings: readonly string[], isJson: boolean): void {
  for (const message of warnings) {
    const event = { type: 'warning', message };
    host.log?.record(event);
    if (isJson) showEvent(host, event);
    else showMessage(host, `warning: ${message}\n`);
    host.environment?.push(message);
  }
}

async function runCommand(
  host: CliHost & Pick<Required<CliHost>, 'args'>,
  products: ProductTable,
  grace: () => number,
): Promise<number> {
  const { args, env, signal } = host;
  const isJson = wantsJson(args, env);
  try {
    warnOfEnvironment(host, overrideNodeSettings(env), isJson);
    const program = createProgram(host, isJson, products);
    warnOfEnvironment(host, admitVariables(program, { env, words: args }), isJson);
    await endInTime(() => program.parseAsync([...args], { from: 'user' }), { signal, grace });
    return 0;
  } catch (error) {
    if (!(error instanceof CommanderError)) {
      return printError(host, interruptionOf(host) ?? explainFailure(error), isJson);
    }
    if (error.exitCode === 0) return 0;
    // Help, which commander has already printed, is more useful than a sentence.
    const isPrinted = error.code === 'commander.help' && !isJson;
    return isPrinted ? EXIT_USAGE : printError(host, toUsageError(error), isJson);
  }
}

/** An error of the system that reached the command line, as a foreseen failure; others as they are. */
export const explainFailure = (error: unknown): unknown => explainSystemError(explainLoss(error));

/** Milliseconds in which work may end in order after an interruption. */
const GRACE = 1400;

/**
 * Limits the time that work takes to end. Waits end with the signal by themselves, but some
 * cannot: the kernel returns no file of a dead network file system, and no process opens the other
 * end of a pipe. Work that has not ended in time is left as a kill would leave it, which is safe
 * at any moment.
 */
async function endInTime(
  work: () => Promise<unknown>,
  { signal, grace }: { readonly signal: AbortSignal; readonly grace: () => number },
): Promise<void> {
  const late = new AbortController();
  let timer: Timer | undefined;
  const onAbort = (): void => {
    timer = startTimer(grace(), () => {
      late.abort(signal.reason);
    });
  };
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    await untilAborted(work(), late.signal);
  } finally {
    signal.removeEventListener('abort', onAbort);
    timer?.stop();
  }
}

/** The interruption, if there was one: an error while stopping is caused by the stop. */
function interruptionOf({ signal, continuation }: CliHost): InterruptedError | undefined {
  const { reason } = signal as { readonly reason: unknown };
  if (!(reason instanceof InterruptedError)) return undefined;
  return new InterruptedError(reason.signal, continuation?.describe());
}

/** True if the command line or the environment asks for JSON; parse errors are answered in JSON, too. */
export function wantsJson(args: readonly string[], env: NodeJS.ProcessEnv): boolean {
  const end = args.indexOf('--');
  const words = end < 0 ? args : args.slice(0, end);
  return FORMATS.some(({ name, form, variable }) => {
    const index = words.findLastIndex((word) => name.test(word) || form.test(word));
    const word = words[index];
    if (word === undefined) return env[variable] === 'json';
    return (name.test(word) ? words[index + 1] : form.exec(word)?.[1]) === 'json';
  });
}

/** Options that ask for JSON, as two words and as one, and their variables. */
const FORMATS = [
  {
    name: /^(?:-o|--output-format)$/,
    form: /^(?:--output-format=|-o=?)(.*)$/,
    variable: 'SEALIFT_OUTPUT_FORMAT',
  },
  { name: /^--log-format$/, form: /^--log-format=(.*)$/, variable: 'SEALIFT_LOG_FORMAT' },
] as const;
