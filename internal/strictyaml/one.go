// SPDX-License-Identifier: Apache-2.0

package strictyaml

import (
	"fmt"
	"strings"
)

// MaxSize is the most bytes that One reads.
const MaxSize = 1 << 20

// Problems is everything wrong with a file, a line each.
type Problems []string

func (p Problems) Error() string { return strings.Join(p, "\n") }

// One decodes a file of one document, which what names ("policy file"); needs says what the least is that it holds. What could be read
// is read, unless ok is false.
func One(data []byte, what, needs string, into any) (problems Problems, ok bool) {
	if len(data) > MaxSize {
		return Problems{fmt.Sprintf("the %s has %d bytes; at most %d are read", what, len(data), MaxSize)}, false
	}
	documents, err := Documents(data)
	switch {
	case err != nil:
		return Problems{err.Error()}, false
	case len(documents) == 0:
		return Problems{fmt.Sprintf("the %s is empty; it needs %s", what, needs)}, false
	case len(documents) > 1:
		return Problems{fmt.Sprintf("the %s holds %d documents; keep one", what, len(documents))}, false
	}
	raw, lines := ToJSON(documents[0])
	if lines != nil {
		return lines, false
	}
	return FromJSON(raw, into)
}
