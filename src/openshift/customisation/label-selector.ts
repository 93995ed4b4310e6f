import { objectOrEmpty } from '../../base/lists.ts';
import { refuseResource, type Resource } from './resources.ts';

type Members = Readonly<Record<string, unknown>>;

/** How the Kubernetes API compares a label with an expression. */
const OPERATORS: Readonly<Record<string, (label: unknown, values: readonly unknown[]) => boolean>> =
  {
    In: (label, values) => label !== undefined && values.includes(label),
    NotIn: (label, values) => label === undefined || !values.includes(label),
    Exists: (label) => label !== undefined,
    DoesNotExist: (label) => label === undefined,
  };

/**
 * Whether a LabelSelector of the Kubernetes API selects a resource: all of `matchLabels`, and all of
 * `matchExpressions`. One without either selects nothing here, as the controllers of assisted-service have it.
 *
 * @throws ConfigError `customize.resource` for a selector that the API would refuse
 */
export function createSelector(selector: Members, where: string): (resource: Resource) => boolean {
  const matchLabels = Object.entries(objectOrEmpty(selector['matchLabels']));
  const expressions = readExpressions(selector['matchExpressions'], where);
  if (matchLabels.length + expressions.length === 0) return () => false;
  return ({ labels }) =>
    matchLabels.every(([label, value]) => labels[label] === value) &&
    expressions.every((matches) => matches(labels));
}

function readExpressions(
  given: unknown = [],
  where: string,
): readonly ((labels: Members) => boolean)[] {
  if (!Array.isArray(given)) throw refuseResource(`matchExpressions of ${where} is not a list`);
  return given.map((each) => {
    const { key, operator, values = [] } = objectOrEmpty(each);
    const compare = OPERATORS[String(operator)];
    const isSet = operator === 'In' || operator === 'NotIn';
    if (!compare || typeof key !== 'string') {
      throw refuseResource(
        `matchExpressions of ${where} has the operator ${JSON.stringify(operator)} for the label ` +
          `${JSON.stringify(key)}, and ${Object.keys(OPERATORS).join(', ')} are known`,
      );
    }
    if (!Array.isArray(values) || values.length > 0 !== isSet) {
      throw refuseResource(
        `matchExpressions of ${where} has ${isSet ? 'no values' : 'values'} for ${String(operator)}`,
      );
    }
    return (labels) => compare(labels[key], values as readonly unknown[]);
  });
}
