/* Conditions of a filter as text, in the syntax of the service: those that the facets write and read again. Free ones
   stay as they were typed. Not about what fields there are. */

const WORDS = new Set(["and", "or", "not", "in", "exists", "true", "false", "null"]);

export function fieldText(name) {
  const bare = /^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z0-9_]+)*$/.test(name) && !WORDS.has(name.toLowerCase());
  return bare ? name : `"${name.replaceAll('"', '""')}"`;
}

export function valueText(value) {
  return typeof value === "string" ? `'${value.replaceAll("'", "''")}'` : JSON.stringify(value);
}

/* A condition that the field has one of the values. */
export function oneOf(field, values) {
  if (values.length === 1) return `${fieldText(field)} = ${valueText(values[0])}`;
  return `${fieldText(field)} in (${values.map(valueText).join(", ")})`;
}

/* Conditions that the field lies in a range; an end that is null is open. */
export function between(field, least, most) {
  const name = fieldText(field);
  return [least === null ? null : `${name} >= ${least}`, most === null ? null : `${name} <= ${most}`]
    .filter(Boolean)
    .join(" and ");
}

/* Whether a condition was written by a facet of this field: what to replace when the facet changes. */
export function isOf(condition, field) {
  return valuesOf(condition, field) !== null || rangeOf(condition, field) !== null;
}

/* The values of `oneOf(field, values)`, or null where the condition is another one. */
export function valuesOf(condition, field) {
  const name = fieldText(field);
  const rest = condition.startsWith(`${name} = `)
    ? [condition.slice(name.length + 3)]
    : condition.startsWith(`${name} in (`) && condition.endsWith(")")
      ? split(condition.slice(name.length + 5, -1))
      : null;
  const values = rest?.map(valueOf);
  return values && values.every((value) => value !== undefined) ? values : null;
}

/* The ends of `between(field, least, most)`, or null. */
export function rangeOf(condition, field) {
  const name = fieldText(field);
  const ends = { ">=": null, "<=": null };
  for (const part of condition.split(" and ")) {
    const sign = Object.keys(ends).find((s) => part.startsWith(`${name} ${s} `));
    const number = sign ? Number(part.slice(name.length + 4)) : NaN;
    if (!Number.isFinite(number)) return null;
    ends[sign] = number;
  }
  return { least: ends[">="], most: ends["<="] };
}

function split(list) {
  return list.match(/'(?:[^']|'')*'|[^,\s][^,]*/g) ?? [];
}

function valueOf(text) {
  if (/^'(?:[^']|'')*'$/.test(text)) return text.slice(1, -1).replaceAll("''", "'");
  try {
    const value = JSON.parse(text);
    return typeof value === "object" || typeof value === "string" ? undefined : value;
  } catch {
    return undefined;
  }
}

/* All conditions as one filter, or null where there is none. */
export function filterOf(conditions) {
  if (conditions.length <= 1) return conditions[0] ?? null;
  return conditions.map((condition) => `(${condition})`).join(" and ");
}
