import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { readOveConfigurations } from '../support/upstream-configurations.ts';
import { describeUpstream } from '../support/upstream-suite.ts';

const OVE = resolve('../shared/data/ove-config');

describeUpstream(
  "upstream's configurations of OVE",
  existsSync(OVE) ? readOveConfigurations(OVE) : [],
);
