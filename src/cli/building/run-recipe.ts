import { openBuildTools, type BuildTools, type ToolsOptions } from '../../recipes/build-tools.ts';
import type { SavedPlan } from '../../recipes/saved-plan.ts';
import { checkIsoPlace, claimIso, type IsoPlace } from '../../stages/pour/claim-iso.ts';
import { placesOf, type CliHost } from '../host.ts';
import type { OutputFormat } from '../terminal/output.ts';
import { createProgress, type LogFormat } from '../terminal/progress.ts';

/** Options of every command that plans or builds an ISO. */
export type RecipeOptions = {
  readonly outputFormat: OutputFormat;
  readonly logFormat: LogFormat;
};

/** A command line of these options. */
export type RecipeCall<Options extends RecipeOptions> = {
  readonly config: string;
  readonly options: Options;
  readonly host: CliHost;
  /** Whether the ISO is written, and not only planned. */
  readonly isBuild?: boolean;
};

/**
 * Runs a recipe with its tools, drawing what it does, and closes everything in any case.
 *
 * @param config what concerns the tools
 */
export async function runRecipe<Request extends IsoPlace & { readonly saved?: SavedPlan }, Result>(
  { options, host, isBuild = false }: RecipeCall<RecipeOptions>,
  { request, config }: { readonly request: Request; readonly config: ToolsOptions['config'] },
  work: (request: Request, tools: BuildTools) => Promise<Result>,
): Promise<Result> {
  await (isBuild ? claimIso(request) : checkIsoPlace(request));
  const progress = createProgress(host, options.logFormat);
  const tools = await openBuildTools({
    ...placesOf(host),
    config,
    workDir: request.workDir,
    signal: host.signal,
    ...(request.saved && { pinned: request.saved.tags }),
    emit: progress.listener,
  });
  try {
    return await work(request, tools);
  } finally {
    progress.close();
    await tools.close();
  }
}
