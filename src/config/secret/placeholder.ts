/** What stands for the pull secret in a template, ours and that of openshift-install. */
export const PLACEHOLDER = '<your-pull-secret>';

export const isPlaceholder = (text: string): boolean => text.trim() === PLACEHOLDER;

export const PLACEHOLDER_PROBLEM =
  `"${PLACEHOLDER}" is the placeholder of the template: ` +
  'write file:PATH, env:NAME or the JSON text of your pull secret in its place';
