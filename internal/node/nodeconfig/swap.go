// SPDX-License-Identifier: Apache-2.0

package nodeconfig

import (
	"strconv"
	"strings"
)

// SwapAllowed reports whether the kubelet is to run though the host swaps. Its flags win over its configuration, and
// the last of them.
func (k Kubelet) SwapAllowed() bool {
	fails, told := k.Config["failSwapOn"].(bool)
	for _, flag := range k.Flags {
		value, ok := strings.CutPrefix(flag, "--fail-swap-on")
		if !ok {
			continue
		}
		if value = strings.TrimPrefix(value, "="); value == "" {
			value = "true"
		}
		if parsed, err := strconv.ParseBool(value); err == nil {
			fails, told = parsed, true
		}
	}
	return told && !fails
}
