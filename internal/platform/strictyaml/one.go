// SPDX-License-Identifier: Apache-2.0

package strictyaml

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// MaxSize is the most bytes that One reads.
const MaxSize = 1 << 20

// maxTold is the most problems that One tells of.
const maxTold = 100

// Problems is everything wrong with a file, a line each.
type Problems []string

func (p Problems) Error() string { return strings.Join(p, "\n") }

// One decodes a file of one document, which what names ("policy file"), and has it checked; needs says what the least
// is that it holds. The check sees all that could be read, also if something could not. Everything that is wrong comes
// back as one error, Problems.
func One(data []byte, what, needs string, into any, check func() field.ErrorList) error {
	if len(data) > MaxSize {
		return Problems{fmt.Sprintf("the %s has %d bytes; at most %d are read", what, len(data), MaxSize)}
	}
	documents := Split(data)
	switch {
	case len(documents) == 0:
		return Problems{fmt.Sprintf("the %s is empty; it needs %s", what, needs)}
	case len(documents) > 1:
		return Problems{fmt.Sprintf("the %s holds %d documents; keep one", what, len(documents))}
	}
	d := documents[0]
	raw, wrong := d.JSON()
	if raw == nil {
		return Problems(d.Lines(wrong))
	}
	more, ok := Decode(raw, into)
	if wrong = append(wrong, more...); ok {
		wrong = And(wrong, About(check()))
	}
	if len(wrong) == 0 {
		return nil
	}
	lines := d.Lines(wrong)
	if n := len(lines) - maxTold; n > 0 {
		lines = append(lines[:maxTold:maxTold], fmt.Sprintf("and %d more", n))
	}
	return Problems(lines)
}
