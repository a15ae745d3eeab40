// SPDX-License-Identifier: Apache-2.0

package readiness

import "fmt"

// Of says how many there are of as many as there are to be: "1 of 2 machines", "1 machine", "3 machines, 1 too many".
func Of(is, wanted int32, one, many string) string {
	switch {
	case is > wanted:
		return fmt.Sprintf("%s, %d too many", count(is, one, many), is-wanted)
	case is == wanted:
		return count(is, one, many)
	}
	return fmt.Sprintf("%d of %s", is, count(wanted, one, many))
}

// ReadyOf says how many of as many as there are to be are Ready: "0 of 1 machine is Ready", "2 machines are Ready".
func ReadyOf(ready, wanted int32, one, many string) string {
	be := "are"
	if max(ready, wanted) == 1 {
		be = "is"
	}
	if ready > wanted {
		return fmt.Sprintf("%s %s Ready, %d too many", count(ready, one, many), be, ready-wanted)
	}
	return fmt.Sprintf("%d of %s %s Ready", ready, count(wanted, one, many), be)
}

func count(n int32, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
