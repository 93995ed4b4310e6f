import js from '@eslint/js';
import { defineConfig } from 'eslint/config';
import tseslint from 'typescript-eslint';

/** An argument of a call takes stack: 120,000 of them, which a list of an input may have, overflow it. */
const SPREAD_LISTS = [
  'CallExpression[callee.property.name=/^(push|unshift|splice|concat)$/] > SpreadElement',
  "CallExpression[callee.object.name='Math'] > SpreadElement",
  "CallExpression[callee.object.name='String'] > SpreadElement",
].map((selector) => ({
  selector,
  message: 'It overflows the stack with a long list: use append or maxOf of src/base/lists.ts.',
}));

/** What only makes the formatter put more on a line. */
const SPREAD_LITERALS = [
  {
    selector: "ObjectExpression > SpreadElement[argument.type='ObjectExpression']",
    message: 'Write its properties into the object around it.',
  },
  {
    selector: "ArrayExpression > SpreadElement[argument.type='ArrayExpression']",
    message: 'Write its elements into the array around it.',
  },
];

/** Constructions in comments that a native reader has to read twice, each with what to write instead. */
const UNCLEAR = [
  [/^[*\s]*(?:What|Of|That of|Those|Who|Whoever)\b/, 'begin with the noun or the verb'],
  [
    /\b(?:anew|once more|for ever|whatever|whoever|nothing of|to be had|mend)\b/i,
    'say it plainly: again, forever, any, no ..., found, fix',
  ],
  [/\b(?:is|are|has|have|had) none\b/, '"there is no ..."'],
  [/\b(?:tells?|told|says?|said) of\b/, '"describes", "reports"'],
  [/\bwhere (?:it|there|that|they|one|none|nothing) (?:is|are|was|has|have)\b/, '"if ..."'],
  [/\b(?:nobody|somebody|anybody)\b/i, 'name the actor'],
  [/(?<!\bthere )\b(?:is|are) no (?!longer|more|less)\w+\b(?!\s+(?:left|such))/i, '"is not a ..."'],
  [/\b(?:stands?|lies?) (?:beside|there|for)\b/, '"is next to", "is", "means"'],
  [/^[*\s]*(?:The same (?:for|of|as)|As `)/, 'repeat what it is, with the difference'],
];

const unclear = {
  create: ({ sourceCode, report }) => ({
    Program() {
      for (const comment of sourceCode.getAllComments()) {
        const text = comment.value.replaceAll(/\s*\n\s*\*?\s*/g, ' ');
        for (const [pattern, instead] of UNCLEAR) {
          const found = pattern.exec(text);
          if (found) report({ loc: comment.loc, message: `"${found[0].trim()}": ${instead}` });
        }
      }
    },
  }),
};

export default defineConfig(
  {
    ignores: [
      'dist/',
      'bench/built/',
      'test/built/',
      'node_modules/',
      '*.config.js',
      '.dependency-cruiser.js',
      'coverage/',
    ],
  },
  js.configs.recommended,
  tseslint.configs.strictTypeChecked,
  tseslint.configs.stylisticTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      '@typescript-eslint/consistent-type-definitions': ['error', 'type'],
      '@typescript-eslint/restrict-template-expressions': [
        'error',
        { allowNumber: true, allowBoolean: true },
      ],
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
      '@typescript-eslint/consistent-type-imports': 'error',
      // What was caught, or is an AbortSignal's reason, is passed on as it is.
      '@typescript-eslint/only-throw-error': [
        'error',
        { allowThrowingUnknown: true, allowThrowingAny: true },
      ],
      '@typescript-eslint/prefer-promise-reject-errors': [
        'error',
        { allowThrowingUnknown: true, allowThrowingAny: true },
      ],
      'no-restricted-syntax': [
        'error',
        ...SPREAD_LISTS,
        ...SPREAD_LITERALS,
        {
          selector:
            "CallExpression[callee.property.name='assert'] > ObjectExpression > Property[key.name=/^(numRuns|seed)$/][value.type='Literal']",
          message: 'More runs and other seeds may be asked for: see test/support/properties.ts.',
        },
        {
          selector: "CallExpression[callee.name=/^mkdir(Sync)?$/] Property[key.name='recursive']",
          message: 'It never returns in /proc: use makeDirectory of src/base/disk/files.ts.',
        },
        {
          selector:
            "CallExpression[callee.property.name='write'] > MemberExpression.callee > :matches(Identifier[name=/^std(out|err)$/], MemberExpression[property.name=/^std(out|err)$/]).object",
          message:
            'It may command the terminal or show a secret: print with src/cli/terminal/output.ts.',
        },
      ],
      'complexity': ['error', 10],
      'max-lines-per-function': ['error', { max: 60, skipComments: true, skipBlankLines: true }],
      'max-params': ['error', 3],
    },
  },
  {
    // A wait that forgets its signal hangs the program: all of them are made of those in wait.ts. The
    // timers of a pour wake its loop and are no waits.
    files: ['src/**/*.ts'],
    ignores: ['src/base/wait.ts', 'src/pour/frontier.ts', 'src/pour/loop.ts'],
    rules: {
      'no-restricted-imports': [
        'error',
        ...['node:timers', 'node:timers/promises', 'timers', 'timers/promises'].map((name) => ({
          name,
          message: 'Wait with src/base/wait.ts.',
        })),
        { name: 'node:events', importNames: ['once'], message: 'Wait with src/base/wait.ts.' },
        {
          name: 'yaml',
          importNames: ['default', 'Composer', 'parse', 'parseAllDocuments', 'parseDocument'],
          message: 'Parse with parse and parseAllDocuments of src/shape/parse-text.ts.',
        },
      ],
      'no-restricted-globals': [
        'error',
        ...['setTimeout', 'setInterval'].map((name) => ({
          name,
          message: 'Wait with src/base/wait.ts.',
        })),
      ],
      'no-restricted-properties': [
        'error',
        {
          object: 'Promise',
          property: 'race',
          message: 'Race with a signal: untilAborted of src/base/wait.ts.',
        },
      ],
    },
  },
  {
    // Others may write to our directories: what is made or replaced goes through one door, which follows
    // no link, overwrites nothing that somebody else put there, and waits for no pipe.
    files: ['src/**/*.ts'],
    ignores: ['src/base/disk/open-file.ts'],
    rules: {
      '@typescript-eslint/no-restricted-imports': [
        'error',
        ...['node:fs', 'node:fs/promises', 'fs', 'fs/promises'].map((name) => ({
          name,
          importNames: [
            'default',
            'promises',
            'createWriteStream',
            'open',
            'openSync',
            ...[
              'appendFile',
              'chmod',
              'chown',
              'copyFile',
              'cp',
              'lchown',
              'lutimes',
              'symlink',
            ].flatMap((call) => [call, `${call}Sync`]),
            ...['truncate', 'utimes', 'writeFile'].flatMap((call) => [call, `${call}Sync`]),
          ],
          message:
            'Open files with src/base/disk/open-file.ts, or write them with src/base/disk/files.ts.',
        })),
      ],
    },
  },
  {
    // The one file that prints.
    files: ['src/cli/terminal/output.ts'],
    rules: { 'no-restricted-syntax': ['error', ...SPREAD_LISTS, ...SPREAD_LITERALS] },
  },
  {
    files: ['src/**/*.ts'],
    rules: { 'no-console': 'error' },
  },
  {
    // A stage reads its inputs and its tools. Defined inside a function, it could read anything else.
    files: ['src/stages/*.ts'],
    rules: {
      'no-restricted-syntax': [
        'error',
        ...SPREAD_LISTS,
        ...SPREAD_LITERALS,
        {
          selector: 'Property[key.name="run"], Property[key.name="reuse"]',
          message:
            'a product runs stages and defines none: a stage is a constant of a file in a step folder',
        },
      ],
    },
  },
  {
    files: ['src/stages/*/**'],
    rules: {
      'no-restricted-syntax': [
        'error',
        ...SPREAD_LISTS,
        ...SPREAD_LITERALS,
        {
          selector: ':function Property[key.name="run"], :function Property[key.name="reuse"]',
          message: 'a stage is a constant at the top of its file, so that it sees no request',
        },
        {
          selector: 'Program > VariableDeclaration[kind!="const"]',
          message: 'a stage reads its inputs and its tools: nothing stays between two runs',
        },
        {
          selector: 'MemberExpression[object.name="process"][property.name="env"]',
          message: 'what a stage reads of the environment is one of its inputs',
        },
      ],
    },
  },
  {
    files: ['**/*.mjs'],
    languageOptions: { globals: { process: 'readonly' } },
  },
  {
    // They run in browsers: the compiler knows the names there.
    files: ['templates/page/*.js'],
    rules: { 'no-undef': 'off' },
  },
  {
    files: ['test/**', 'demo/**', 'bench/**', 'scripts/**'],
    rules: { 'complexity': 'off', 'max-lines-per-function': 'off', 'no-restricted-syntax': 'off' },
  },
  {
    files: ['demo/**', 'bench/**', 'scripts/**'],
    rules: { 'no-restricted-syntax': ['error', ...SPREAD_LITERALS] },
  },
  {
    // It runs before the program is loaded, so nothing of the program can print for it.
    files: ['src/cli/start.cts'],
    rules: { '@typescript-eslint/no-require-imports': 'off', 'no-restricted-syntax': 'off' },
  },
  {
    files: ['src/**/*.{ts,cts}'],
    plugins: { english: { rules: { unclear } } },
    rules: { 'english/unclear': 'error' },
  },
);
