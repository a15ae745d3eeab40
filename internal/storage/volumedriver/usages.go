// SPDX-License-Identifier: Apache-2.0

package volumedriver

import (
	"context"
	"sync"
	"time"

	"muster.dev/muster/internal/storage/filestore"
)

const (
	// countedFor is how long what was counted is told again: kubelets ask each minute, and counting reads every
	// directory of a volume.
	countedFor = 5 * time.Minute
	// countTime is how long counting one volume may take. If it takes longer, the usage is not reported.
	countTime = 2 * time.Second
)

// usages remembers what was counted in volumes.
type usages struct {
	mutex   sync.Mutex
	counted map[string]counted
}

type counted struct {
	usage filestore.Usage
	whole bool
	until time.Time
}

// of returns what is written in a directory; false if that cannot be counted in time. One volume is counted at a time.
func (u *usages) of(ctx context.Context, files *filestore.Store, id, directory string) (filestore.Usage, bool) {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	now := time.Now()
	for key, one := range u.counted {
		if now.After(one.until) {
			delete(u.counted, key)
		}
	}
	key := id + ":" + directory
	one, ok := u.counted[key]
	if !ok {
		ctx, cancel := context.WithTimeout(ctx, countTime)
		defer cancel()
		usage, err := files.Usage(ctx, filestore.Place{FileSystemID: id, Path: directory})
		one = counted{usage: usage, whole: err == nil, until: now.Add(countedFor)}
		if u.counted == nil {
			u.counted = map[string]counted{}
		}
		u.counted[key] = one
	}
	return one.usage, one.whole
}
