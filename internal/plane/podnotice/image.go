// SPDX-License-Identifier: Apache-2.0

package podnotice

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/internal/plane/readiness"
	"muster.dev/muster/internal/platform/shellquote"
	"muster.dev/muster/internal/platform/termsafe"
)

const reasonNotLoaded = "ImageNotLoaded"

// notLoaded returns nil if a kubelet's Event is not about an image that a machine has not got.
func notLoaded(event *corev1.Event) *notice {
	rest, ok := strings.CutPrefix(event.Message, "Failed to pull image ")
	if !ok || event.Reason != reasonFailed {
		return nil
	}
	quoted, err := strconv.QuotedPrefix(rest)
	if err != nil {
		return nil
	}
	image, err := strconv.Unquote(quoted)
	if err != nil || strings.Contains(image, ".dkr.ecr.") { // the account's registry has what was pushed to it
		return nil
	}
	said := termsafe.Line(image)
	return &notice{image, reasonNotLoaded, readiness.Shorten(fmt.Sprintf("image %s is not loaded (M-POD-81), and %s. If it was built here: docker save %s | muster image load -", said, why(rest), shellquote.Quote(said)))}
}

// code is the code of an answer of package pullthrough, as containerd writes it.
var code = regexp.MustCompile(`^(denied|unavailable|toomanyrequests|unknown|digest invalid): `)

// why is what the registry says, which comes last, in a line of its own after that of the request.
func why(message string) string {
	at := strings.LastIndex(message, "\n")
	if at < 0 {
		return "no registry has it"
	}
	words := code.ReplaceAllString(strings.TrimSpace(message[at:]), "")
	return termsafe.Line(strings.TrimSuffix(words, "."))
}
