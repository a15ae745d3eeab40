// SPDX-License-Identifier: Apache-2.0

package portplan

import (
	"errors"
	"strings"
	"testing"
)

// Ports are decided about in sequence, with the numbers that chance would give.
func TestChoose(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		has     []int // port of each wish before
		asked   bool  // the first wish
		taken   []int
		running string // the process of every wish, if it runs
		busy    []int
		chance  []int // the numbers that are chosen from, above portMin
		want    []int
		says    string
	}{
		"none yet":                                   {has: []int{0, 0}, chance: []int{7, 8}, want: []int{20007, 20008}},
		"the same twice by chance":                   {has: []int{0, 0}, chance: []int{7, 7, 8}, want: []int{20007, 20008}},
		"they are kept":                              {has: []int{21000, 21001}, want: []int{21000, 21001}},
		"one is busy":                                {has: []int{21000, 21001}, busy: []int{21001}, chance: []int{1}, want: []int{21000, 20001}},
		"it is busy by the process that has it":      {has: []int{21000}, busy: []int{21000}, running: "p", want: []int{21000}},
		"another plane has it":                       {has: []int{21000}, taken: []int{21000}, chance: []int{1}, want: []int{20001}},
		"another plane has it, and the process runs": {has: []int{21000}, taken: []int{21000}, running: "p", chance: []int{1}, want: []int{20001}},
		"chance finds what others have":              {has: []int{0}, taken: []int{20001}, busy: []int{20002}, chance: []int{1, 2, 3}, want: []int{20003}},
		"asked for and free":                         {has: []int{21000, 21000}, asked: true, chance: []int{1}, want: []int{21000, 20001}},
		"asked for and busy":                         {has: []int{21000}, asked: true, busy: []int{21000}, says: "spec.apiServer.port: 21000 is in use: etcd (process 7) listens on it: choose another port"},
		"asked for and another plane's":              {has: []int{21000}, asked: true, taken: []int{21000}, says: "spec.apiServer.port: 21000 is in use: another plane of this account has it: choose another port"},
		"every one is busy":                          {has: []int{0}, busy: []int{20000}, says: "found no free port from 20000 to 32000 on 127.0.0.1 in 200 tries (the last was 20000: etcd (process 7) listens on it): stop programs that listen there; any user"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := surroundings{
				address: "127.0.0.1", taken: set(tc.taken), running: map[string]bool{tc.running: true},
				use: func(port int) error {
					if set(tc.busy)[port] {
						return errors.New("etcd (process 7) listens on it")
					}
					return nil
				},
				random: func(int) int {
					if len(tc.chance) == 0 {
						return 0
					}
					next := tc.chance[0]
					tc.chance = tc.chance[1:]
					return next
				},
			}
			ports := append([]int(nil), tc.has...)
			wishes := make([]wish, len(ports))
			for i := range ports {
				wishes[i] = wish{port: &ports[i], processes: []string{"q", "p"}, asked: tc.asked && i == 0}
			}
			err := choose(wishes, in)
			if tc.says != "" {
				if err == nil || !strings.HasPrefix(err.Error(), tc.says) {
					t.Errorf("error %v, want %q", err, tc.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range tc.want {
				if ports[i] != want {
					t.Errorf("port %d is %d, want %d", i, ports[i], want)
				}
			}
			if len(in.taken) != len(tc.taken) {
				t.Errorf("the other planes have %v now", in.taken)
			}
		})
	}
}

func set(ports []int) map[int]bool {
	all := map[int]bool{}
	for _, port := range ports {
		all[port] = true
	}
	return all
}
