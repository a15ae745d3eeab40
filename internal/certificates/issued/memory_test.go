// SPDX-License-Identifier: Apache-2.0

package issued

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// A year of a cluster: each node with two certificates of a week, renewed at four fifths of their life, leaves 130
// keys.
func TestMemoryOfAYear(t *testing.T) {
	const nodes, each = 1000, 130
	r, err := New(config(newServer(t)))
	if err != nil {
		t.Fatal(err)
	}
	before := heap()
	written, number := 0, 0
	for first := 0; first < each; first += 13 { // a segment has keys of some time, and of all nodes in it
		for from := 0; from < nodes; from += 500 {
			c := content{}
			for n := from; n < from+500; n++ {
				g := group{owner: fmt.Sprintf("ip-192-168-%d-%d.ec2.internal", n/250, n%250), machine: fmt.Sprintf("i-%017x", n), last: time.Unix(int64(first)*3600, 0).UTC()}
				for k := first; k < first+13; k++ {
					g.keys = append(g.keys, shorten(numbered(n*each+k)))
				}
				c.groups = append(c.groups, g)
			}
			number++
			cm := &corev1.ConfigMap{Data: c.data()}
			cm.Name, cm.ResourceVersion = nameOf(number), strconv.Itoa(number)
			written += size(cm.Data)
			r.apply(cm)
		}
	}
	perKey := float64(heap()-before) / (nodes * each)
	t.Logf("%.1f bytes of memory and %.1f bytes in ConfigMaps for each of %d keys", perKey, float64(written)/(nodes*each), r.Stats().Keys)
	if r.Stats().Keys != nodes*each || perKey > 24 {
		t.Errorf("%d keys take %.1f bytes each", r.Stats().Keys, perKey)
	}
	start := time.Now()
	const lookups = 10_000
	for n := range lookups {
		if r.owner(shorten(numbered(n*13))) == "" {
			t.Fatalf("key %d is nobody's", n*13)
		}
	}
	t.Logf("a lookup takes %s", time.Since(start)/lookups)
}

func numbered(n int) (k [32]byte) {
	binary.BigEndian.PutUint64(k[:], uint64(n)*0x9e3779b97f4a7c15) // spread as hashes are
	return k
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
