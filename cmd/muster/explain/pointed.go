// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"regexp"
	"slices"
	"strings"

	"muster.dev/muster/internal/explain/cause"
	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/platform/shellquote"
)

// decide decides about an object. Where there are several clusters, the commands that show the evidence, and those of fixes,
// name the object's.
func (q *question) decide(catalogue cause.Catalogue, f diagnosis.Facts) diagnosis.Report {
	if len(q.snapshot.Clusters) < 2 {
		return diagnosis.Decide(catalogue, f, q.snapshot.At)
	}
	r := diagnosis.Decide(catalogue, pointed(f), q.snapshot.At)
	for i := range r.Causes {
		r.Causes[i].Fix = FixIn(r.Causes[i].Fix, f.Names["$CLUSTER"])
	}
	return r
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

// command is one in a fix.
var command = regexp.MustCompile("`[^`]+`")

// FixIn returns a fix whose commands are for a cluster, where there are several.
func FixIn(fix, cluster string) string {
	return command.ReplaceAllStringFunc(fix, func(quoted string) string { return "`" + lookIn(strings.Trim(quoted, "`"), cluster) + "`" })
}

// lookIn returns a command for a cluster, whose context in kubeconfigs has its name. Words behind -- are another program's, and
// a command behind a pipe is looked at for itself.
func lookIn(look, cluster string) string {
	for _, ends := range []string{" | ", " -- "} {
		if own, rest, ok := strings.Cut(look, ends); ok {
			if ends == " | " {
				rest = lookIn(rest, cluster)
			}
			return lookIn(own, cluster) + ends + rest
		}
	}
	switch {
	case cluster == "":
		return look
	case strings.HasPrefix(look, "muster "):
		return look + " --cluster " + shellquote.Quote(cluster)
	case strings.HasPrefix(look, "kubectl ") && !strings.Contains(look, " --context "):
		return look + " --context " + shellquote.Quote(cluster)
	}
	return look
}
