/** Runs stages as soon as their inputs are ready, and reuses the results whose inputs did not change. */

// Running stages.
export { createEngine } from './engine.ts';
export type { BuildEvent, Engine, EventListener, StageReason, StageTime } from './engine.ts';
export { mapStage } from './map-stage.ts';
export type { MappedStage } from './map-stage.ts';

// Stages and their results.
export { createStageStore, fingerprintOf } from './stage.ts';
export type { Sealed, Stage, StageContext, StageEntry, StageStore, StageValue } from './stage.ts';
