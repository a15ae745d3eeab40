// SPDX-License-Identifier: Apache-2.0

package imagenotice

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/internal/cluster/readiness"
	"muster.dev/muster/internal/platform/shellquote"
	"muster.dev/muster/internal/platform/termsafe"
)

const (
	// reasonFailed is the reason of kubelets' Events about images that they do not get (kubernetes pkg/kubelet/events, FailedToPullImage).
	reasonFailed = "Failed"
	reason       = "ImageNotLoaded"
)

// notice is what there is to be said about an image.
type notice struct{ image, message string }

// decide reads a kubelet's Event. It returns nil if it is not about an image that a machine has not got.
func decide(event *corev1.Event) *notice {
	rest, ok := strings.CutPrefix(event.Message, "Failed to pull image ")
	if !ok || event.Reason != reasonFailed || event.InvolvedObject.Kind != "Pod" {
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
	return &notice{image, readiness.Shorten(fmt.Sprintf("image %s is not loaded, and %s. If it was built here: docker save %s | muster image load", said, why(rest), shellquote.Quote(said)))}
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
