// SPDX-License-Identifier: Apache-2.0

package eks

import (
	"strings"
	"testing"
)

func TestEncryptionConfig(t *testing.T) {
	w := newWorld(t, nil)
	with := func(config string) string {
		return strings.TrimSuffix(makeOne, "}") + `,"encryptionConfig":` + config + "}"
	}
	for config, want := range map[string]string{
		`[{"resources":["secrets"],"provider":{"keyArn":"other"}}]`:                                    "The keyArn of encryptionConfig cannot be used: there is no key other",
		`[{"resources":["secrets"]}]`:                                                                  "cannot be used",
		`[{"resources":["pods"],"provider":{"keyArn":"` + kmsKey + `"}}]`:                              "they must be [secrets]",
		`[{"provider":{"keyArn":"` + kmsKey + `"}}]`:                                                   "they must be [secrets]",
		`[{"resources":["secrets"],"provider":{"keyArn":"` + kmsKey + `"}},{"resources":["secrets"]}]`: "there may be one",
	} {
		w.ask("POST", "/clusters", with(config), 400, "InvalidParameterException", want, `"clusterName":"Blue_1"`)
	}
	right := `[{"resources":["secrets"],"provider":{"keyArn":"` + kmsKey + `"}}]`
	w.gate.Asked = nil
	w.ask("POST", "/clusters", with(right), 200, kmsKey)
	if len(w.gate.Asked) != 2 || !strings.Contains(w.gate.Asked[0], "eks:encryptionconfigproviderkeyarns="+kmsKey) {
		t.Errorf("%q", w.gate.Asked)
	}
	w.ask("GET", "/clusters/Blue_1", "", 200, `"encryptionConfig":`+right)
}
