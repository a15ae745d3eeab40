// SPDX-License-Identifier: Apache-2.0

package authfile

import (
	"fmt"
	"strings"

	"muster.dev/muster/internal/strictyaml"
)

// MaxSize is the most bytes the file may have.
const MaxSize = 1 << 20

// Problems is everything wrong with a file, a line each.
type Problems []string

func (p Problems) Error() string { return strings.Join(p, "\n") }

// Read reads the file and fills in defaults. Everything that is wrong with it comes back as one error, Problems.
func Read(data []byte) (Configuration, error) {
	var c Configuration
	if len(data) > MaxSize {
		return c, Problems{fmt.Sprintf("the file has %d bytes; at most %d are read", len(data), MaxSize)}
	}
	documents, err := strictyaml.Documents(data)
	switch {
	case err != nil:
		return c, Problems{err.Error()}
	case len(documents) == 0:
		return c, Problems{"the file is empty; it needs apiVersion, kind and clusterID"}
	case len(documents) > 1:
		return c, Problems{fmt.Sprintf("the file holds %d documents; keep one", len(documents))}
	}
	raw, problems := strictyaml.ToJSON(documents[0])
	if problems != nil {
		return c, Problems(problems)
	}
	problems, ok := strictyaml.FromJSON(raw, &c)
	if !ok {
		return Configuration{}, Problems(problems)
	}
	c.setDefaults()
	for _, e := range c.validate() {
		problems = append(problems, e.Error())
	}
	if len(problems) > 0 {
		return Configuration{}, Problems(problems)
	}
	return c, nil
}
