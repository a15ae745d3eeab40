// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"muster.dev/muster/internal/explain/cause"
	"muster.dev/muster/internal/explain/diagnosis"
)

// decide decides about an object. Where there are several clusters, the commands that show the evidence, and those of fixes,
// name the object's.
func (q *question) decide(catalogue cause.Catalogue, f diagnosis.Facts) diagnosis.Report {
	if len(q.snapshot.Clusters) < 2 {
		return diagnosis.Decide(catalogue, f, q.snapshot.At)
	}
	return diagnosis.DecidePointed(catalogue, f, q.snapshot.At)
}
