const SIZE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const;

/** Bytes as people read them, with one decimal and a binary unit: `41.3 GiB`. */
export function formatSize(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < SIZE_UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${SIZE_UNITS[unit] ?? ''}`;
}

/** What `parseSize` reads, for errors and `--help`. */
export const SIZE_FORM = 'a size such as 700MiB or 4GiB';

/** Bytes of a size with a binary unit or none: `4GiB`, `1024`. undefined for other texts. */
export function parseSize(text: string): number | undefined {
  const [, number, unit = 'B'] = /^([1-9]\d{0,11})(B|[KMGT]iB)?$/.exec(text) ?? [];
  const power = SIZE_UNITS.indexOf(unit as (typeof SIZE_UNITS)[number]);
  const size = Number(number) * 1024 ** power;
  return Number.isSafeInteger(size) ? size : undefined;
}

/** `950 ms`, `12 s`, `3 min 05 s`, `2 h 07 min`. */
export function formatDuration(milliseconds: number): string {
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  const seconds = Math.round(milliseconds / 1000);
  if (seconds < 60) return `${seconds} s`;
  const two = (value: number): string => String(value).padStart(2, '0');
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${two(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${two(minutes % 60)} min`;
}

/** In milliseconds, largest first as they are written. */
const TIME_UNITS = [3_600_000, 60_000, 1000] as const;

/** What `parseDuration` reads, for errors and `--help`. */
export const DURATION_FORM = 'a time such as 30s, 10m or 1h30m; 0s for none';

/**
 * Milliseconds of a duration in hours, minutes and seconds, in the form of Go's time.ParseDuration:
 * `1h30m`, `90s`, `0`. undefined for other texts.
 */
export function parseDuration(text: string): number | undefined {
  if (text === '0') return 0;
  const match = /^(?=.)(?:(\d{1,2})h)?(?:(\d{1,4})m)?(?:(\d{1,5})s)?$/.exec(text);
  if (!match) return undefined;
  const [, ...numbers] = match;
  return TIME_UNITS.reduce((sum, unit, index) => sum + unit * Number(numbers[index] ?? 0), 0);
}
