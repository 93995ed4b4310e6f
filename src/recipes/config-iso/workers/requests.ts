import type { CheckOptions } from '../../../config/sites/check-site.ts';
import type { Site, SiteInput } from '../../../config/sites/site.ts';
import type { SitePlaces } from '../site/site-places.ts';
import type { Wanted } from '../site/site-record.ts';
import type { ComposeSite } from '../site/compose-site.ts';

export type ComposeOrder = Omit<ComposeSite, 'keys' | 'signal'>;

/** What a thread for sites is asked; it answers as `SiteWorker` does. */
export type SiteRequest =
  | { readonly op: 'check'; readonly input: SiteInput; readonly options: CheckOptions }
  | { readonly op: 'find'; readonly places: SitePlaces; readonly wanted: Wanted }
  | { readonly op: 'compose'; readonly site: Site; readonly order: ComposeOrder };

/** What a thread for sites asks; it is answered with pairs, and with a hash. */
export type KeyRequest =
  | { readonly op: 'keys'; readonly count: number }
  | { readonly op: 'hash'; readonly text: string; readonly salt: Uint8Array };
