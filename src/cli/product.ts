import type { Command } from 'commander';
import { isObject, withoutUndefined } from '../base/lists.ts';
import { pruneCache } from '../base/store/keep.ts';
import type { Json } from '../base/text/json.ts';
import type { ConfigNames } from '../config/load.ts';
import { isOurs } from '../media/open.ts';
import type { RecognizedMedium } from '../media/recognize.ts';
import { checkHere, claimHere } from '../outputs/output.ts';
import { isHere } from '../outputs/place.ts';
import type { MadeIso } from '../stages/5-pour/pour.ts';
import {
  buildIso,
  lockIso,
  planIso,
  reproduceIso,
  type Decided,
  type IsoProduct,
  type Reproduction,
} from '../stages/build.ts';
import type { AskedIso } from '../stages/resolved/describe-asked.ts';
import type { Lock } from '../stages/resolved/record.ts';
import { openBuildTools, type BuildTools } from '../stages/tools.ts';
import type { BuildOptions } from './ask-iso.ts';
import { hostPlacesOf, type CliHost } from './host.ts';
import { rehearseBuilt, requireRehearsed, type Rehearsed } from './medium/rehearse-built.ts';
import { verifyBuilt, type Verified } from './medium/verify.ts';
import { refuseOption } from './options.ts';
import { requireAllowed } from './secrets-elsewhere.ts';
import type { OutputFormat } from './terminal/output.ts';
import { createProgress, type LogFormat } from './terminal/progress.ts';
import { type Report, writeReport } from './terminal/report.ts';

/*
 * A product as the command line has it: the row of a page in src/stages, for the table in products.ts.
 * This file also owns how commands work on what is asked: with tools that live as long as the work.
 */

/** Flags of every command that takes a product; a product adds its own, which are all optional. */
export type ProductFlags = BuildOptions & {
  readonly outputFormat: OutputFormat;
  readonly logFormat: LogFormat;
  /** Only for commands that build. */
  readonly verify?: boolean;
  readonly allowSecrets?: boolean;
  readonly rehearse?: boolean;
  /** In bytes. */
  readonly cacheLimit?: number;
  /** Only for commands that write; true if another run of the output is waited for. */
  readonly wait?: boolean;
};

export type ProductCall = {
  readonly config: ConfigNames;
  readonly options: ProductFlags;
  readonly host: CliHost;
  /** True if the ISO is written, not only planned. */
  readonly isBuild?: boolean;
};

/** The one place where flags, configuration, environment and defaults meet. */
export type AskProduct<Request> = (
  config: ConfigNames,
  flags: ProductFlags,
  host: CliHost,
) => Request | Promise<Request>;

/** The words of an option that several commands name differently. */
export type OptionWords = { readonly flags: string; readonly description: string };

type CommandWords = { readonly description: string; readonly help: string };

/** The part of a row that commands register by. */
type Registered = {
  /** Owner of a configuration, as messages name it: `an appliance`. */
  readonly maker: string;
  /** Default name of the configuration. */
  readonly config: string;
  /** Default name of the output. */
  readonly output: string;
  /** Adds the argument, unless the command has its own, and all options of the product. */
  readonly addOptions: (command: Command, output?: OptionWords) => Command;
  /** Help of the commands that have the product in their name; absent for the first product. */
  readonly words?: {
    readonly build: CommandWords;
    /** Absent: `plan` recognizes the product by its configuration. */
    readonly plan?: CommandWords;
    readonly lock: CommandWords;
  };
  /** The plans that `build --plan` takes. */
  readonly plans: string;
  /** Marks by which commands recognize the product that no argument names. */
  readonly marks?: {
    /** Adds the options that the first product does not have. */
    readonly addOptions: (command: Command) => Command;
    readonly ofConfig?: (config: ConfigNames, host: CliHost) => boolean;
    readonly ofMedium?: (medium: RecognizedMedium) => boolean;
  };
};

/** The part of a row that turns flags into a medium, and describes results. */
type Performed<Request, Made, Plan> = {
  readonly ask: AskProduct<Request>;
  /** True if the ISO may carry secrets: then `build` takes `--allow-secrets`. */
  readonly hasSecrets: boolean;
  readonly describeReport: (
    report: Built<NoInfer<Made>>,
    host: CliHost,
    request: Request,
  ) => Report;
  readonly describePlan: (plan: Plan, host: CliHost) => Report;
};

/** The report of a build, with the findings of `--verify` and of the rehearsal. */
export type Built<Made> = Made & MadeIso & Verified & Rehearsed;

export type ProductRow = Registered & {
  readonly name: string;
  readonly hasSecrets: boolean;
  readonly build: (call: ProductCall) => Promise<void>;
  readonly plan: (call: ProductCall) => Promise<void>;
  readonly lock: (call: ProductCall) => Promise<{ readonly path: string; readonly lock: Lock }>;
  readonly reproduce: (call: ProductCall) => Promise<Reproduction>;
};

/** The products; the first one is meant unless another is named. */
export type ProductTable = readonly [ProductRow, ...ProductRow[]];

type Result = Readonly<Record<string, Json | undefined>>;

/** Creates the row of a product, in which the types of its requests and results end. */
export function describeProduct<
  Request extends AskedIso,
  Prepared extends Decided,
  Made extends Result & { readonly output: string },
  Plan extends Result,
>(
  product: IsoProduct<Request, Prepared, Made, Plan>,
  row: Registered & Performed<Request, Made, Plan>,
): ProductRow {
  return {
    ...row,
    name: product.name,
    async build(call) {
      const { options, host } = call;
      const { request, result } = await runAsked(row.ask, { ...call, isBuild: true }, (...asked) =>
        buildIso(product, ...asked),
      );
      const verified = await verifyBuilt(result.output, options, host);
      const rehearsed = await rehearseBuilt({ ...request, ...result }, options, host);
      const built = { ...result, ...verified, ...rehearsed };
      await writeReport({ host, ...options }, built, () =>
        row.describeReport(built, host, request),
      );
      requireRehearsed(result.output, built, options);
    },
    async plan(call) {
      const { host, options } = call;
      const { result } = await runAsked(row.ask, call, (...asked) => planIso(product, ...asked));
      await writeReport({ host, ...options }, result, () => row.describePlan(result, host));
    },
    async lock(call) {
      const { request, result } = await runAsked(row.ask, call, (...asked) =>
        lockIso(product, ...asked),
      );
      return { path: request.held.lock?.path ?? '', lock: result };
    },
    async reproduce(call) {
      const { result } = await runAsked(row.ask, call, (...asked) =>
        reproduceIso(product, ...asked),
      );
      return result;
    },
  };
}

/** Works on what is asked, with tools that live as long as the work; shows its progress. */
export async function runAsked<Request extends AskedIso, Result>(
  ask: AskProduct<Request>,
  { config, options, host, isBuild = false }: ProductCall,
  work: (request: Request, tools: BuildTools) => Promise<Result>,
): Promise<{ readonly request: Request; readonly result: Result }> {
  const request = await ask(config, options, host);
  refuseUnfit(request, options, isBuild);
  await (isBuild ? claimHere(request, isOurs) : checkHere(request));
  const progress = createProgress(host, options.logFormat);
  const tools = await openBuildTools({
    ...hostPlacesOf(host),
    config: request.access,
    request,
    workDir: request.workDir,
    signal: host.signal,
    ...withoutUndefined({ wait: options.wait, environment: host.environment }),
    emit: progress.listener,
  });
  try {
    if (isBuild) await tools.claimElsewhere(request);
    if (isBuild) host.continuation?.begin();
    const result = await work(request, tools);
    host.continuation?.end();
    await pruneAfter(request, options, host);
    return { request, result: withEnvironment(result, host) };
  } finally {
    progress.close();
    await tools.close();
  }
}

function refuseUnfit(request: AskedIso, options: ProductFlags, isBuild: boolean): void {
  const { output, confidential, reuses } = request;
  if (isBuild && !isHere(request)) requireAllowed(output, confidential, options);
  const { cacheLimit: limit } = options;
  if (limit === undefined || reuses?.cache !== undefined) return;
  throw refuseOption('usage.cache-limit', String(limit), { expected: 'also --cache <dir>' });
}

async function pruneAfter(
  { reuses }: AskedIso,
  { cacheLimit: limit }: ProductFlags,
  { now }: CliHost,
): Promise<void> {
  if (limit !== undefined && reuses?.cache !== undefined)
    await pruneCache(reuses.cache, limit, now());
}

/** A plan or report with the warnings about the environment, if there are any; a list stays as it is. */
const withEnvironment = <Result>(result: Result, { environment = [] }: CliHost): Result =>
  environment.length === 0 || !isObject(result) ? result : { ...result, environment };
