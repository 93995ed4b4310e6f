/* Owns the form of `--audit-syslog`; it is read at every start, so nothing that sends is loaded with it. */

export type SyslogTarget =
  | { readonly kind: 'udp' | 'tcp'; readonly host: string; readonly port: number }
  | { readonly kind: 'unix'; readonly path: string };

/** Reads `udp://HOST:PORT`, `tcp://HOST:PORT` or `unix:PATH`; undefined for anything else. */
export function parseSyslogTarget(text: string): SyslogTarget | undefined {
  const [, path] = /^unix:(?:\/\/)?(\/.+)$/.exec(text) ?? [];
  if (path !== undefined) return { kind: 'unix', path };
  const [, kind, inner, plain = inner, port = '514'] =
    /^(udp|tcp):\/\/(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]+))(?::(\d{1,5}))?\/?$/.exec(text) ?? [];
  if (plain === undefined || Number(port) > 65_535) return undefined;
  return { kind: kind === 'udp' ? 'udp' : 'tcp', host: plain, port: Number(port) };
}
