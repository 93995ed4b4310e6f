import { Argument, type Command, type Option } from 'commander';
import { readVersion } from '../base/program.ts';
import { parseKeys } from '../openpgp/index.ts';
import { RED_HAT_KEYS } from '../openshift/release/signature-store.ts';
import type { CliHost } from './host.ts';
import { writeContent, createOutputOption, type OutputFormat } from './terminal/output.ts';
import { lineOf, listRows, say, writeReport } from './terminal/report.ts';

/* This file owns `completion` and `version`, which describe the program itself. */

export function registerCompletion(program: Command, host: CliHost): void {
  program
    .command('completion')
    .description('print a completion script for a shell')
    .addArgument(new Argument('<shell>', 'the shell').choices(['bash', 'zsh', 'fish']))
    .addHelpText(
      'after',
      '\nExample:\n  $ sealift completion bash > ~/.local/share/bash-completion/completions/sealift',
    )
    .action(async (shell: Shell) => {
      await writeContent(host, renderCompletion(shell, program));
    });
}

type Shell = 'bash' | 'zsh' | 'fish';

/** A command in the form that a completion script needs. */
type Node = {
  /** Words after the program's name: `registry serve`; empty for the program itself. */
  readonly path: string;
  readonly description: string;
  readonly children: readonly Node[];
  readonly options: readonly Option[];
  /** Allowed values of the first argument. */
  readonly choices: readonly string[];
};

/** Renders a script from the commands, options and choices that the program really has. */
function renderCompletion(shell: Shell, program: Command): string {
  const nodes = flatten(describe(program, ''));
  if (shell === 'fish') return renderFish(program.name(), nodes);
  const bash = renderBash(program.name(), nodes);
  // zsh runs bash completions through its own adapter.
  if (shell === 'bash') return bash;
  return `#compdef ${program.name()}\nautoload -U +X bashcompinit && bashcompinit\n${bash}`;
}

function describe(command: Command, path: string): Node {
  const help = command.createHelp();
  return {
    path,
    description: command.description(),
    children: help
      .visibleCommands(command)
      .filter((child) => child.name() !== 'help')
      .map((child) => describe(child, `${path} ${child.name()}`.trim())),
    options: help.visibleOptions(command),
    choices: command.registeredArguments[0]?.argChoices ?? [],
  };
}

const flatten = (node: Node): readonly Node[] => [node, ...node.children.flatMap(flatten)];

const lastWord = (node: Node): string => node.path.split(' ').at(-1) ?? '';

const flagsOf = (option: Option): readonly string[] =>
  [option.short, option.long].filter((flag) => flag !== undefined);

function renderBash(name: string, nodes: readonly Node[]): string {
  const paths = nodes.filter(({ path }) => path !== '').map(({ path }) => `'${path}'`);
  const words = nodes.map((node) => {
    const all = [...node.children.map(lastWord), ...node.choices, ...node.options.flatMap(flagsOf)];
    return `    '${node.path}') words='${all.join(' ')}' ;;`;
  });
  const values = nodes.flatMap((node) =>
    node.options
      .filter((option) => option.argChoices !== undefined)
      .flatMap((option) => flagsOf(option).map((flag) => ({ node, option, flag })))
      .map(
        ({ node: { path }, option, flag }) =>
          `    '${path}:${flag}') words='${(option.argChoices ?? []).join(' ')}' ;;`,
      ),
  );
  return `_${name}() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]}
  local path='' word words=''
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "\${path:+$path }$word" in
    ${paths.join('|') || "''"}) path="\${path:+$path }$word" ;;
    esac
  done
  case "$path" in
${words.join('\n')}
  esac
  case "$path:$previous" in
${values.join('\n')}
  esac
  COMPREPLY=()
  while IFS='' read -r word; do COMPREPLY+=("$word"); done < <(compgen -W "$words" -- "$current")
}
complete -o default -F _${name} ${name}
`;
}

function renderFish(name: string, nodes: readonly Node[]): string {
  const lines = nodes.flatMap((node) => {
    const start = `complete -c ${name} -n '${fishCondition(node)}'`;
    return [
      ...node.children.map(
        (child) => `${start} -f -a ${lastWord(child)} -d ${quote(child.description)}`,
      ),
      ...node.choices.map((choice) => `${start} -f -a ${choice}`),
      ...node.options.map((option) => `${start} ${fishOption(option)}`),
    ];
  });
  return `${lines.join('\n')}\n`;
}

function fishCondition({ path, children }: Node): string {
  if (path === '') return '__fish_use_subcommand';
  const seen = path.split(' ').map((word) => `__fish_seen_subcommand_from ${word}`);
  const below = children.map(lastWord).join(' ');
  const inner = below === '' ? [] : [`not __fish_seen_subcommand_from ${below}`];
  return [...seen, ...inner].join('; and ');
}

function fishOption(option: Option): string {
  const parts = [
    ...(option.short === undefined ? [] : [`-s ${option.short.slice(1)}`]),
    ...(option.long === undefined ? [] : [`-l ${option.long.slice(2)}`]),
    ...(option.required || option.optional ? ['-r'] : []),
    ...(option.argChoices === undefined ? [] : [`-f -a ${quote(option.argChoices.join(' '))}`]),
    `-d ${quote(option.description)}`,
  ];
  return parts.join(' ');
}

const quote = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;

export function registerVersion(program: Command, host: CliHost): void {
  program
    .command('version')
    .description('print the version, and the keys that releases are verified with by default')
    .addOption(createOutputOption())
    .addHelpText('after', '\nExample:\n  $ sealift version -o json | jq .releaseKeys')
    .action(async ({ outputFormat }: { outputFormat: OutputFormat }) => {
      const keys = parseKeys(Buffer.from(RED_HAT_KEYS), host.now() / 1000);
      const value = {
        version: readVersion(),
        releaseKeys: keys.map(({ fingerprint, name }) => ({ fingerprint, name })),
      };
      await writeReport({ host, outputFormat }, value, () => ({
        title: ['Version'],
        body: [
          lineOf(say`sealift ${value.version}`),
          ...listRows(
            { width: 13 },
            value.releaseKeys.map(({ fingerprint, name }) => [
              'release key',
              say`${fingerprint}  ${name}`,
            ]),
          ),
        ],
      }));
    });
}
