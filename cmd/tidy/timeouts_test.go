package tidy

var timeoutSnippets = []snippet{
	{"timeouts", "engine/a_test.go", in("context.WithTimeout(ctx, 20*time.Second)", "time"), 1},
	{"timeouts", "engine/a_test.go", in("<-time.After(time.Minute)", "time"), 1},
	{"timeouts", "engine/a_test.go", in("_ = time.Now().Add(10 * time.Second)", "time"), 1},
	{"timeouts", "engine/a_test.go", in("const limit = 3 * time.Second", "time"), 1},
	{"timeouts", "engine/a_test.go", "package p\n\nconst testTimeout = time.Minute\n", 1},
	{"timeouts", "engine/a_test.go", "package p\n\nvar soon = timeout.Scaled(time.Minute)\n", 0},
	{"timeouts", "engine/a_test.go", in("<-time.After(timeout.Scaled(time.Minute))", "time"), 0},
	{"timeouts", "engine/a_test.go", in("<-time.After(time.Millisecond)", "time"), 0},
	{"timeouts", "engine/a.go", in("<-time.After(time.Minute)", "time"), 0},
	{"timeouts", "roce/a_test.go", in("now.Add(time.Second)", "time"), 0},
}
