// SPDX-License-Identifier: Apache-2.0

package lru

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// model is the same by other means: a list, the newest last.
type model struct {
	keys   []int
	values map[int]int
	most   int
}

func (m *model) touch(key int) {
	m.keys = append(slices.DeleteFunc(m.keys, func(k int) bool { return k == key }), key)
}

func (m *model) remove(key int) {
	m.keys = slices.DeleteFunc(m.keys, func(k int) bool { return k == key })
	delete(m.values, key)
}

func TestItIsTheLeastRecentlyUsedThatMakesRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 5).Draw(t, "most")
		got, want := New[int, int](most), &model{values: map[int]int{}, most: most}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			key := rapid.IntRange(0, 7).Draw(t, "key")
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0:
				got.Delete(key)
				want.remove(key)
			case 1:
				got.DeleteFunc(func(k, _ int) bool { return k%2 == key%2 })
				for _, k := range slices.Clone(want.keys) {
					if k%2 == key%2 {
						want.remove(k)
					}
				}
			case 2:
				if key == 0 {
					got.Clear()
					want.keys, want.values = nil, map[int]int{}
				}
			case 3, 4, 5:
				value, ok := got.Get(key)
				expected, known := want.values[key]
				if ok != known || value != expected {
					t.Fatalf("key %d is %d, %v; it should be %d, %v", key, value, ok, expected, known)
				}
				if known {
					want.touch(key)
				}
			default:
				value := rapid.Int().Draw(t, "value")
				got.Put(key, value)
				if _, known := want.values[key]; !known && len(want.keys) == most {
					want.remove(want.keys[0])
				}
				want.values[key] = value
				want.touch(key)
			}
			if got.Len() != len(want.keys) {
				t.Fatalf("there are %d entries; it should be %d", got.Len(), len(want.keys))
			}
		}
		if len(got.nodes) > most+1 {
			t.Fatalf("%d nodes for %d entries", len(got.nodes)-1, most)
		}
	})
}
