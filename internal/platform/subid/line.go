// SPDX-License-Identifier: Apache-2.0

package subid

import (
	"fmt"
	"strconv"
	"strings"
)

// idSpace is the number of ids.
const idSpace = 1 << 32

// taken is a range of ids that are not free: from first, before end.
type taken struct {
	first, end uint64
	by         string // for people: the line or the user, and the file
}

// owner is whom a line names, however malformed the rest of it is.
func owner(line string) string {
	name, _, _ := strings.Cut(line, ":")
	return strings.TrimSpace(name)
}

// parseLine reads the ids that a line of subuid or subgid reserves. It accepts what any known reader does: shadow-utils
// read octal and hexadecimal numbers (a2ul with base 0, lib/subordinateio.c) and know no comments; Go programs such as
// podman trim space. A range beyond the last id is cut off there.
func parseLine(line string) (first, end uint64, ok bool) {
	fields := strings.Split(line, ":")
	if len(fields) != 3 || owner(line) == "" {
		return 0, 0, false
	}
	first, ok = parseNumber(fields[1])
	count, countOK := parseNumber(fields[2])
	if !ok || !countOK || first >= idSpace {
		return 0, 0, false
	}
	return first, first + min(count, idSpace-first), true
}

// parseNumber reads a number as strtoul(3) does with base 0, or else as decimal.
func parseNumber(text string) (uint64, bool) {
	text = strings.TrimPrefix(strings.TrimSpace(text), "+")
	digits, base := text, 10
	switch {
	case strings.HasPrefix(text, "0x"), strings.HasPrefix(text, "0X"):
		digits, base = text[2:], 16
	case strings.HasPrefix(text, "0"):
		base = 8
	}
	if n, err := strconv.ParseUint(digits, base, 64); err == nil {
		return n, true
	}
	n, err := strconv.ParseUint(text, 10, 64)
	return n, err == nil
}

// parseOwn reads a line that names the owner, which must be as Reserve writes it.
func parseOwn(line, name string) (Range, error) {
	line = strings.TrimSuffix(line, "\n")
	var r Range
	_, _ = fmt.Sscanf(line, name+":%d:%d", &r.First, &r.Count) // whatever it accepts besides is refused here
	if r.line(name) != line {
		return Range{}, fmt.Errorf("malformed line %q: must be %s:FIRST:COUNT with decimal numbers; correct or remove it", line, name)
	}
	return r, nil
}

// idsOf reads the ids in the given fields of a file such as passwd, and reports whether it has an entry of that name.
func idsOf(content, path, name string, fields ...int) (all []taken, named bool) {
	for line := range strings.Lines(content) {
		values := strings.Split(line, ":")
		named = named || len(values) > 1 && values[0] == name
		for _, field := range fields {
			if field >= len(values) {
				continue
			}
			if id, ok := parseNumber(values[field]); ok && id < idSpace {
				all = append(all, taken{first: id, end: id + 1, by: fmt.Sprintf("id %d of %q in %s", id, values[0], path)})
			}
		}
	}
	return all, named
}
