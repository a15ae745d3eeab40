// SPDX-License-Identifier: Apache-2.0

package cloudwatchlogs

import (
	"testing"

	"muster.dev/muster/internal/platform/lru"
)

// A batch of one log stream is never taken for a batch of another one, however that is named.
func TestBatchesOfOtherStreams(t *testing.T) {
	p := &puts{answered: lru.New[string, int](mostAnswered)}
	one, _ := p.batch("000000000000:g", "a", []put{{1, "x"}, {1, "y"}})
	again, _ := p.batch("000000000000:g", "a", []put{{1, "x"}, {1, "y"}})
	like, _ := p.batch("000000000000:g", "a\n1 1 x", []put{{1, "y"}}) // as if the first event were in the name
	if one.File != again.File || one.File == like.File {
		t.Errorf("%s, again %s, of another stream %s", one.File, again.File, like.File)
	}
}
