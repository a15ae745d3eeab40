// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"
	"strings"

	"muster.dev/muster/internal/explain/cause"
	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/platform/shellquote"
)

// decide decides about an object. Where there are several clusters, the commands that show the evidence name the object's.
func (q *question) decide(catalogue cause.Catalogue, f diagnosis.Facts) diagnosis.Report {
	if len(q.snapshot.Clusters) > 1 {
		f = pointed(f)
	}
	return diagnosis.Decide(catalogue, f, q.snapshot.At)
}

// pointed returns facts whose commands name the cluster.
func pointed(f diagnosis.Facts) diagnosis.Facts {
	f.Evidence, f.Parts = slices.Clone(f.Evidence), slices.Clone(f.Parts)
	cluster := f.Names["$CLUSTER"]
	for i := range f.Evidence {
		f.Evidence[i].Look = lookIn(f.Evidence[i].Look, cluster)
	}
	for i := range f.Parts {
		f.Parts[i] = pointed(f.Parts[i])
	}
	return f
}

// lookIn returns a command for a cluster, whose context in kubeconfigs has its name.
func lookIn(look, cluster string) string {
	switch {
	case cluster == "":
		return look
	case strings.HasPrefix(look, "muster "):
		return look + " --cluster " + shellquote.Quote(cluster)
	case strings.HasPrefix(look, "kubectl "):
		return look + " --context " + shellquote.Quote(cluster)
	}
	return look
}
