// SPDX-License-Identifier: Apache-2.0

package issued

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	segmentPrefix  = "muster-issued-certificates-"
	registerLabel  = "certificates.muster.dev/register"
	managedByLabel = "app.kubernetes.io/managed-by"
	selector       = registerLabel + "=true"
)

// segment is a ConfigMap in memory, or what is still to be written into one.
type segment struct {
	name     string
	number   int // 0 if the name is not one that this package gives: such a segment is read and never written
	uid      types.UID
	revision string            // its resourceVersion
	meta     metav1.ObjectMeta // labels and annotations, which may be somebody else's
	bytes    int
	damage   []string
	lost     bool // there may have been lines in it that nobody knows
	sealed   bool // the API server does not let it grow

	entries []Entry
	uids    map[string]bool
	keys    map[short]string // of entries, to their owners
	retired []retired        // sorted
}

// retired is a key whose certificates have expired. It takes 16 bytes, since there may be millions.
type retired struct {
	key   short
	group uint32 // in groups
}

func byKey(a, b retired) int { return bytes.Compare(a.key[:], b.key[:]) }

func newSegment() *segment {
	return &segment{uids: map[string]bool{}, keys: map[short]string{}}
}

func (s *segment) add(e Entry) {
	s.entries = append(s.entries, e)
	s.uids[e.UID] = true
	if k := shorten(e.Key); s.keys[k] == "" {
		s.keys[k] = e.owner()
	}
}

// owner of a key. The empty string is nobody's name.
func (s *segment) owner(k short, g *groups) string {
	if o := s.keys[k]; o != "" {
		return o
	}
	if n, ok := slices.BinarySearchFunc(s.retired, retired{key: k}, byKey); ok {
		return g.list[s.retired[n].group].owner
	}
	return ""
}

// writable reports whether the segment may be changed: a damaged one is evidence, one of another name is not ours.
func (s *segment) writable() bool { return s.number > 0 && s.damage == nil && !s.sealed }

func (s *segment) len() int { return len(s.entries) + len(s.retired) }

// groups are the owners and machines of retired keys, each kept once.
type groups struct {
	list []group
	ids  map[[2]string]uint32
}

func (g *groups) id(owner, machine string, last time.Time) uint32 {
	k := [2]string{owner, machine}
	n, ok := g.ids[k]
	if !ok {
		n = uint32(len(g.list)) //nolint:gosec // 2^32 pairs of nodes and machines do not fit into memory
		g.list = append(g.list, group{owner: owner, machine: machine})
		g.ids[k] = n
	}
	if last.After(g.list[n].last) {
		g.list[n].last = last
	}
	return n
}

// retire adds keys to a segment; sort makes them findable.
func (s *segment) retire(g *groups, owner, machine string, last time.Time, keys ...short) {
	n := g.id(owner, machine, last)
	for _, k := range keys {
		s.retired = append(s.retired, retired{k, n})
	}
}

func (s *segment) sort() {
	slices.SortFunc(s.retired, func(a, b retired) int { return cmp.Or(byKey(a, b), cmp.Compare(a.group, b.group)) })
	s.retired = slices.Clip(slices.Compact(s.retired))
}

// content is what is written of a segment: keys by owner.
func (s *segment) content(g *groups) content {
	c := content{entries: s.entries}
	keys := slices.Clone(s.retired)
	slices.SortStableFunc(keys, func(a, b retired) int {
		x, y := g.list[a.group], g.list[b.group]
		return cmp.Or(strings.Compare(x.owner, y.owner), strings.Compare(x.machine, y.machine))
	})
	for n, k := range keys {
		if n == 0 || keys[n-1].group != k.group {
			c.groups = append(c.groups, g.list[k.group])
		}
		last := &c.groups[len(c.groups)-1]
		last.keys = append(last.keys, k.key)
	}
	return c
}

// numberOf reads the number in the name of a segment, 0 if it is not one.
func numberOf(name string) int {
	digits, _ := strings.CutPrefix(name, segmentPrefix)
	n, err := strconv.Atoi(digits)
	if err != nil || n < 1 || nameOf(n) != name {
		return 0
	}
	return n
}

func nameOf(number int) string { return fmt.Sprintf("%s%06d", segmentPrefix, number) }

// configMap returns the ConfigMap of a segment. A segment without a resourceVersion is not in the cluster yet, so its
// ConfigMap gets the register's labels.
func (s *segment) configMap(namespace string, data map[string]string) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: *s.meta.DeepCopy(), Data: data}
	cm.Namespace, cm.Name, cm.UID, cm.ResourceVersion = namespace, s.name, s.uid, s.revision
	if s.revision == "" {
		cm.Labels = map[string]string{managedByLabel: "muster", registerLabel: "true"}
	}
	return cm
}

// identify says which object a segment is.
func (s *segment) identify(cm *corev1.ConfigMap) {
	s.name, s.number, s.uid, s.revision, s.bytes = cm.Name, numberOf(cm.Name), cm.UID, cm.ResourceVersion, size(cm.Data)
	s.meta = metav1.ObjectMeta{Labels: cm.Labels, Annotations: cm.Annotations, OwnerReferences: cm.OwnerReferences, Finalizers: cm.Finalizers}
}

// clone returns a copy that may be changed and written.
func (s *segment) clone() *segment {
	c := *s
	c.entries, c.retired = slices.Clone(s.entries), slices.Clone(s.retired)
	c.uids, c.keys = maps.Clone(s.uids), maps.Clone(s.keys)
	return &c
}

// keep drops the entries that are not to be kept.
func (s *segment) keep(wanted func(Entry) bool) {
	old := s.entries
	s.entries, s.uids, s.keys = nil, map[string]bool{}, map[short]string{}
	for _, e := range old {
		if wanted(e) {
			s.add(e)
		}
	}
}
