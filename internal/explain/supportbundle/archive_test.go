// SPDX-License-Identifier: Apache-2.0

package supportbundle

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A file that does not fit, or has a name that means something else elsewhere, is listed as left out.
func TestWhatIsLeftOut(t *testing.T) {
	t.Parallel()
	a := New(time.Now())
	a.room = 100
	for _, name := range []string{"../x", "/etc/x", "a//b", "a/../b", ".hidden", "a\nb", "big", "big"} {
		a.AddText(name, strings.Repeat("x ", 40))
	}
	a.AddText("more", strings.Repeat("x ", 40))
	a.AddJSON("secret.json", corev1.Secret{TypeMeta: metav1.TypeMeta{Kind: "Secret"}, Data: map[string][]byte{"a": []byte("b")}})
	files, err := a.Files()
	if list := string(files[contentsName]); err != nil || len(files) != 2 || strings.Count(list, `"what"`) != 9 || !strings.Contains(list, "the archive is full") {
		t.Errorf("%v: %d files, %s", err, len(files), list)
	}
}
