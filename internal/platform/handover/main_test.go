// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"
)

// envRole has the test binary be a process of a handover instead of testing: "hangs" or "next", a space, and the path of
// the socket.
const envRole = "HANDOVER_TEST_ROLE"

func TestMain(m *testing.M) {
	role, path := "", ""
	if _, err := fmt.Sscan(os.Getenv(envRole), &role, &path); err != nil {
		os.Exit(m.Run())
	}
	time.AfterFunc(2*time.Minute, func() { os.Exit(4) }) // if the tests were killed and cannot end it
	ctx := context.Background()                          //nolint:forbidigo // there is no test in this process
	c := Config{Path: path, Patience: 200 * time.Millisecond, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	switch role {
	case "hangs":
		if err := listenAndHang(ctx, path); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	case "next":
		_, err := fmt.Println(c.Take(ctx, func(map[string]*os.File) error { return nil }))
		if err != nil {
			os.Exit(1)
		}
	}
}
