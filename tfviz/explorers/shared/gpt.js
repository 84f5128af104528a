// What is wrong with a text for a GPT that knows these letters only; "" if nothing is.
function unread(text, letters, least, most) {
  const strange = [...new Set(text)].filter((x) => !letters.includes(x)).map((x) => `“${x}”`);
  if (strange.length) {
    const some = strange.slice(0, 3).join(", ");
    return `The model has never read ${some}: only small letters a to z, and spaces.`;
  }
  if (text.length < least) return `The model needs ${least > 1 ? `${least} letters` : "a letter"}.`;
  return text.length > most ? `${most} letters are the most.` : "";
}
