import { describe, expect, it } from 'vitest';
import { renderTemplate } from '../../../src/openshift/node/registry.ts';

describe('renderTemplate', () => {
  it('fills every hole with its unchanged value', () => {
    expect(renderTemplate('{{ a }}-{{ b-2 }}-{{ a }}', { 'a': '$&', 'b-2': '{{ a }}' })).toBe(
      '$&-{{ a }}-$&',
    );
  });

  it('does not change templates of other languages', () => {
    expect(renderTemplate("podman ps --format '{{.ID}}'", {})).toBe("podman ps --format '{{.ID}}'");
  });

  it.each([
    ['{{ a }}', {}, 'template has the hole "a" but no value for it'],
    ['{{ toString }}', {}, 'template has the malformed hole'],
    ['{{ constructor }}', {}, 'template has the hole "constructor" but no value for it'],
    ['x', { a: '1', b: '2' }, 'template has no hole "a", "b"'],
    ['{{a}}', { a: '1' }, 'template has the malformed hole "{{a}}"'],
  ])('throws on %s with %j', (text, holes, message) => {
    expect(() => renderTemplate(text, holes as Record<string, string>)).toThrow(message);
  });
});
