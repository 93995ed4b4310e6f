import type { LogFormat } from '../terminal/progress.ts';
import type { ServeAccess } from './access.ts';
import type { AuditOptions } from './audit-options.ts';
import type { LimitOptions } from './limits.ts';
import type { Address } from './listen.ts';

export type ServeSettings = LimitOptions &
  AuditOptions &
  ServeAccess & {
    readonly listen: Address;
    /** For images without TLS, beside the one with TLS. */
    readonly listenHttp?: Address;
    readonly data: string;
    readonly store: readonly string[];
    /** In bytes. */
    readonly cacheSize: number;
    readonly digestRate: number;
    readonly publicUrl?: string;
    readonly tlsCert?: string;
    readonly tlsKey?: string;
    readonly requireRegistry: readonly string[];
    readonly corsOrigin: readonly string[];
    readonly urlLifetime: number;
    readonly drain: number;
    /** Processes that answer downloads. */
    readonly workers?: number;
    /** True if it does not start with settings that would be refused. */
    readonly strict: boolean;
    readonly logFormat: LogFormat;
  };
