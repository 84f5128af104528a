// What `npx tsc` cannot see: what a module finds in its scope, and what pages have beside it.
declare const tf: ReturnType<typeof kit>;
declare const tfvizKit: typeof kit;

// app.js gives App what controls.js and words.js hold.
type Parts = typeof controls & typeof terms;
interface App extends Parts {}

interface Window {
  Plotly: any;
  tfvizPage: any;
  tfvizProgress: any;
  tfvizPython: any;
  tfvizTryHere: any;
  tfvizSearch: any;
  /** The paths of the course, from a file of the book. */
  tfvizPaths: any;
  /** What tables.js offers to atlas.js. */
  tfvizTables: any;
}
// All elements of these pages are of HTML or SVG, and all events come from one.
interface Element {
  readonly dataset: DOMStringMap;
  tabIndex: number;
}
interface EventTarget {
  closest(selectors: string): any;
}
interface Event {
  detail: any;
}
