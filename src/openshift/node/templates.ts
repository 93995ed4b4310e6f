import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { PACKAGE_ROOT } from '../../base/package-root.ts';
import { textFile, type File, type Unit } from '../../ignition/config.ts';
import { renderTemplate } from '../../ignition/template.ts';

type Holes = Readonly<Record<string, string>>;

const ROOT = new URL('templates/', PACKAGE_ROOT);

/** A template's text with its holes filled. `name` is a path below `templates/`. */
export function renderText(name: string, holes: Holes = {}): string {
  return renderTemplate(readFileSync(fileURLToPath(new URL(name, ROOT)), 'utf8'), holes);
}

/** An executable of `/usr/local/bin`; its values stand inside single quotes of the shell. */
export function renderScript(name: string, holes: Holes = {}): File {
  for (const [hole, value] of Object.entries(holes)) {
    if (/['\n\0]/.test(value)) throw new Error(`value of the hole "${hole}" would end its quotes`);
  }
  return textFile(`/usr/local/bin/${name}`, renderText(`scripts/${name}`, holes), 0o555);
}

/** A unit that systemd's preset enables at the first boot. */
export function renderEnabledUnit(name: string, holes: Holes = {}): Unit {
  return { ...renderUnit(name, holes), enabled: true };
}

/** A drop-in, `<unit>.d/<name>`, for a unit of the installer. It has no effect without that unit. */
export const renderDropIn = (unit: string, name: string): Unit => ({
  name: unit,
  dropins: [{ name, contents: renderText(`units/${unit}.d/${name}`) }],
});

/** A unit that something else starts: another unit, a path, a udev rule. */
export function renderUnit(name: string, holes: Holes = {}): Unit {
  return { name, contents: renderText(`units/${name}`, holes) };
}
