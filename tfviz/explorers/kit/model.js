// The part of anywidget's model that explorers use, where there is no kernel.
class Model {
  constructor(state) {
    this.state = state;
    this.calls = new Map();
  }
  get(key) {
    return this.state[key];
  }
  set(key, value) {
    if (Object.is(this.state[key], value)) return;
    this.state[key] = value;
    this.emit(`change:${key}`, this, value);
    this.emit("change", this);
  }
  save_changes() {}
  send() {}
  on(event, call) {
    this.calls.set(event, [...(this.calls.get(event) || []), call]);
  }
  off(event, call) {
    this.calls.set(
      event,
      (this.calls.get(event) || []).filter((known) => known !== call),
    );
  }
  emit(event, ...values) {
    for (const call of this.calls.get(event) || []) call(...values);
  }
}
