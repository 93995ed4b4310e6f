import type { AnsweredRequest } from './app.ts';
import type { Service } from './context.ts';
import type { NoteKnown } from './images/answer-known.ts';
import type { WorkerAnswer, WorkerReading } from './workers/reports.ts';

/*
 * Owns how answers are reported that no route gave: from memory in this process, and those of workers. They are counted,
 * logged and noted as the answers of routes are.
 */

export type WorkerReports = {
  readonly answered: (answer: WorkerAnswer) => void;
  /** Notes that a client of a worker is still reading. */
  readonly reading: (reading: WorkerReading) => void;
};

type Reporting = Pick<Service, 'audit' | 'readers'>;

type OnAnswer = (request: AnsweredRequest) => void;

export const createNotes =
  ({ audit }: Reporting, onAnswer: OnAnswer): NoteKnown =>
  (incoming, { file, route }) => {
    const end = audit.fetch(file, audit.clientOf({ incoming }));
    return (answer) => {
      end(answer?.entry);
      if (!answer) return;
      const { method, milliseconds, entry } = answer;
      report(onAnswer, { method, route, milliseconds, ...entry });
    };
  };

export function createWorkerReports(
  { audit, readers }: Reporting,
  onAnswer: OnAnswer,
): WorkerReports {
  const noteReader = ({ image: { file }, address }: WorkerReading): void => {
    const { id, revision } = file;
    readers.begin({ id, revision, address })();
  };
  return {
    answered(answer) {
      const { image, address, method, entry, milliseconds } = answer;
      noteReader(answer);
      audit.fetch(image.file, { method, address })(entry);
      report(onAnswer, { method, route: image.route, milliseconds, ...entry });
    },
    reading(reading) {
      noteReader(reading);
      audit.fetch(reading.image.file, { method: 'GET', address: reading.address })();
    },
  };
}

type Given = Pick<AnsweredRequest, 'method' | 'route' | 'status' | 'milliseconds' | 'error'> & {
  readonly complete: boolean;
};

function report(
  onAnswer: OnAnswer,
  { method, route, status, complete, milliseconds, error }: Given,
): void {
  const failed = error === undefined ? {} : { error };
  onAnswer({ method, route, status, isCut: !complete, milliseconds, ...failed });
}
