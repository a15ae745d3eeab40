// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/internal/explain/cause"
	"muster.dev/muster/internal/platform/shellquote"
)

// DecidePointed decides as [Decide]. All commands, by which evidence is seen and things are mended, name the cluster: where
// there are several, a command without one would ask which is meant.
func DecidePointed(catalogue cause.Catalogue, f Facts, now time.Time) Report {
	r := Decide(catalogue, f.pointed(), now)
	for i := range r.Causes {
		r.Causes[i].Fix = FixIn(r.Causes[i].Fix, f.Names["$CLUSTER"])
	}
	return r
}

// pointed returns the facts with commands that name the cluster.
func (f Facts) pointed() Facts {
	f.Evidence, f.Parts = slices.Clone(f.Evidence), slices.Clone(f.Parts)
	cluster := f.Names["$CLUSTER"]
	for i := range f.Evidence {
		f.Evidence[i].Look = lookIn(f.Evidence[i].Look, cluster)
	}
	for i := range f.Parts {
		f.Parts[i] = f.Parts[i].pointed()
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
