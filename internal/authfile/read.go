// SPDX-License-Identifier: Apache-2.0

package authfile

import "muster.dev/muster/internal/strictyaml"

// MaxSize is the most bytes the file may have.
const MaxSize = strictyaml.MaxSize

// Problems is everything wrong with the file, a line each.
type Problems = strictyaml.Problems

// Read reads the file and fills in defaults. Everything that is wrong with it comes back as one error, Problems.
func Read(data []byte) (Configuration, error) {
	var c Configuration
	problems, ok := strictyaml.One(data, "file", "apiVersion, kind and clusterID", &c)
	if !ok {
		return Configuration{}, problems
	}
	c.setDefaults()
	for _, e := range c.validate() {
		problems = append(problems, e.Error())
	}
	if len(problems) > 0 {
		return Configuration{}, problems
	}
	return c, nil
}
