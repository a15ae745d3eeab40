// SPDX-License-Identifier: Apache-2.0

package bootstraptoken

import (
	"fmt"
	"slices"
)

// Field is the name of a field of a Wish.
type Field string

// The fields that a WishError names.
const (
	FieldTTL       Field = "ttl"
	FieldMachine   Field = "machine"
	FieldNodeName  Field = "nodeName"
	FieldRejoin    Field = "rejoin"
	FieldAddresses Field = "addresses"
)

// WishError says what is wrong with fields of a Wish.
type WishError struct {
	format string
	args   []any // a Field is printed by its name
}

func wrong(format string, args ...any) error { return &WishError{format, args} }

// Error names the fields as they are called here.
func (e *WishError) Error() string { return e.Text(func(f Field) string { return string(f) }) }

// Text is the error with the names of fields that the caller's user knows, such as flags.
func (e *WishError) Text(name func(Field) string) string {
	args := slices.Clone(e.args)
	for i, arg := range args {
		if field, ok := arg.(Field); ok {
			args[i] = name(field)
		}
	}
	return fmt.Sprintf(e.format, args...)
}
