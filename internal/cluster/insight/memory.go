// SPDX-License-Identifier: Apache-2.0

package insight

import "fmt"

// memory looks whether the host has memory for one more API server, which takes over from the one that serves.
func memory(f Facts, minor string, category Category) Insight {
	i := Insight{
		Name: "Memory for another API server", Category: category, Minor: minor,
		Description:    "Compares the memory that the host has available with what one more kube-apiserver needs while it takes over",
		Recommendation: "Stop other programs, or use a host with more memory",
	}
	is := f.Host.Memory.Is
	switch {
	case f.Host.Memory.Unknown != "":
		return i.unknown(f.Host.Memory.Unknown)
	case is.Is < is.Of:
		i.Finding = Finding{Error, fmt.Sprintf("The host has %d MiB of memory available, and one more kube-apiserver needs %d MiB", is.Is>>20, is.Of>>20)}
	default:
		i.Finding = Finding{Passing, fmt.Sprintf("The host has %d MiB of memory available", is.Is>>20)}
	}
	return i
}
