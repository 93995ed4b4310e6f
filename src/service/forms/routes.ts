import { BASE_PATH, type App, type Service } from '../context.ts';
import { checkForm } from './check.ts';
import { readHostTable } from './host-table.ts';
import { readNetworks } from './read-networks.ts';

/** Adds the operations of the page's forms, which store nothing: other clients may use them, too. */
export function addFormRoutes(app: App, service: Service): void {
  const forms = `${BASE_PATH}/sealift/forms`;
  app.post(`${forms}/check`, (exchange) => checkForm(service, exchange));
  app.post(`${forms}/networks`, (exchange) => readNetworks(service, exchange));
  app.post(`${forms}/host-table`, (exchange) => readHostTable(service, exchange));
}
