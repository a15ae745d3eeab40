// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"muster.dev/muster/internal/aws/region"
)

// writer is a store of a directory, as a process has one.
func writer(tb testing.TB, dir string) *Store {
	tb.Helper()
	of, err := region.Find("us-east-1")
	if err != nil {
		tb.Fatal(err)
	}
	s, err := NewStore(StoreConfig{Dir: dir, Region: of, Subnets: func() ([]Subnet, error) {
		return []Subnet{{ID: "subnet-1", VPC: "vpc-1", Zone: "us-east-1a", CIDR: netip.MustParsePrefix("10.0.0.0/16")}}, nil
	}})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// addresses are those of all records, as a writer has them and as they are read anew.
func addresses(t *testing.T, s *Store) (known, read []string) {
	t.Helper()
	w, err := s.lock()
	if err != nil {
		t.Fatal(err)
	}
	defer w.release()
	all, err := s.all(w)
	if err != nil {
		t.Fatal(err)
	}
	listed, err := s.list()
	if err != nil {
		t.Fatal(err)
	}
	of := func(records []Record) []string {
		var texts []string
		for _, r := range records {
			texts = append(texts, r.PrivateIP.String()+" "+r.ID)
		}
		slices.Sort(texts)
		return texts
	}
	return of(all), of(listed)
}

// Whatever several processes launch and remove, whatever people remove behind their backs, and whatever becomes of the count,
// a writer knows the addresses that are taken, and gives none twice.
func TestWritersKnowWhatIsTaken(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir := filepath.Join(t.TempDir(), "machines")
		stores := []*Store{writer(t, dir), writer(t, dir), writer(t, dir)}
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			s, id := stores[rapid.IntRange(0, 2).Draw(rt, "process")], fmt.Sprintf("i-%017x", rapid.IntRange(0, 12).Draw(rt, "machine"))
			switch rapid.IntRange(0, 6).Draw(rt, "step") {
			case 0, 1, 2:
				if _, err := s.Put("fake", LaunchRequest{ID: id, UserData: []byte("x")}); err != nil {
					rt.Fatal(err)
				}
			case 3:
				if err := s.Delete(id); err != nil {
					rt.Fatal(err)
				}
			case 4:
				if err := os.RemoveAll(s.Path(id)); err != nil { // by hand
					rt.Fatal(err)
				}
			case 5: // a process was killed before it wrote a record
				if err := os.MkdirAll(s.Path(id), 0o700); err != nil {
					rt.Fatal(err)
				}
			case 6: // the count is damaged, or an earlier one is back
				damaged := rapid.SampledFrom([]string{"", "\x01", "\x02\x00\x00\x00\x00\x00\x00\x00", "\xff\xff\xff\xff\xff\xff\xff\xff", "text that is longer than a count"}).Draw(rt, "count")
				if err := os.WriteFile(filepath.Join(dir, "lock"), []byte(damaged), 0o600); err != nil && !os.IsNotExist(err) {
					rt.Fatal(err)
				}
			}
			known, read := addresses(t, s)
			for i, one := range read {
				if !slices.Contains(known, one) {
					rt.Fatalf("the process does not know of %s: %v", one, known)
				}
				ip, _, _ := strings.Cut(one, " ")
				if i > 0 && strings.HasPrefix(read[i-1], ip+" ") {
					rt.Fatalf("two machines have one address: %v", read)
				}
			}
		}
	})
}

// A launch, and a removal, look at no other record, and an address is free again at once.
func TestALaunchLooksAtItsOwnRecord(t *testing.T) {
	s := writer(t, filepath.Join(t.TempDir(), "machines"))
	launch := func(i int) Record {
		t.Helper()
		record, err := s.Put("fake", LaunchRequest{ID: fmt.Sprintf("i-%017x", i)})
		if err != nil {
			t.Fatal(err)
		}
		return record
	}
	for i := range 3 {
		launch(i)
	}
	if !s.taken.known || len(s.taken.records) != 3 {
		t.Fatalf("after 3 launches %d records are known: %t", len(s.taken.records), s.taken.known)
	}
	if err := s.Delete("i-00000000000000001"); err != nil {
		t.Fatal(err)
	}
	if !s.taken.known || len(s.taken.records) != 2 {
		t.Fatalf("after a removal %d records are known: %t", len(s.taken.records), s.taken.known)
	}
	if got, want := launch(9).PrivateIP.String(), "10.0.0.5"; got != want {
		t.Errorf("the address %s was given, want %s, which is free again", got, want)
	}
}

func BenchmarkLaunchAmong(b *testing.B) {
	for _, n := range []int{500, 5000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := writer(b, filepath.Join(b.TempDir(), "machines"))
			for i := range n {
				if _, err := s.Put("fake", LaunchRequest{ID: fmt.Sprintf("i-%017x", i)}); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				n++
				if _, err := s.Put("fake", LaunchRequest{ID: fmt.Sprintf("i-%017x", n)}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
