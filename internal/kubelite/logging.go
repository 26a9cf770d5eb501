package kubelite

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc/grpclog"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"
	kwoklog "sigs.k8s.io/kwok/pkg/log"
)

// logs are the loggers of the components, which all write to one place.
type logs struct {
	out   io.Writer
	level int
	close func()
	// gaveUp receives the error for which a component would end the process. Only its goroutine ends instead, so that
	// the cluster can be stopped in order.
	gaveUp chan error
}

// giveUp ends the goroutine of a component that cannot continue.
func giveUp(gaveUp chan<- error, err error) {
	select {
	case gaveUp <- err:
	default: // only the first reason counts
	}
	runtime.Goexit()
}

// setupLogs directs the log of the whole process to the configured place.
func setupLogs(cfg Config) (logs, error) {
	l := logs{out: cfg.Stderr, level: cfg.Verbosity, close: func() {}, gaveUp: make(chan error, 1)}
	if cfg.LogFile != "" {
		f, err := os.OpenFile(cfg.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return l, fmt.Errorf("log file cannot be opened: %w: choose another with --log-file", err)
		}
		l.out, l.close = f, func() { _ = f.Close() }
	}
	// The parts apply their logging flags when they start; the first of them counts, which is ours.
	logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged
	var fs flag.FlagSet
	klog.InitFlags(&fs)
	for name, value := range map[string]string{"logtostderr": "false", "alsologtostderr": "false", "one_output": "true", "stderrthreshold": "FATAL", "v": strconv.Itoa(cfg.Verbosity)} {
		if err := fs.Set(name, value); err != nil {
			return l, fmt.Errorf("setting up the log: %w", err)
		}
	}
	klog.SetOutput(l.out)
	klog.OsExit = func(int) { giveUp(l.gaveUp, errors.New("a component gave up, the reason is in the log")) }
	// The API server opens and closes a connection to etcd for each resource, and grpc warns about every one.
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, l.out))
	return l, nil
}

// etcd returns the logger of etcd: warnings only, unless the log level is higher. gaveUp receives the errors for which
// etcd would end the process.
func (l logs) etcd(gaveUp chan<- error) *zap.Logger {
	level := zapcore.WarnLevel
	if l.level >= 2 {
		level = zapcore.InfoLevel
	}
	encoding := zap.NewProductionEncoderConfig()
	encoding.EncodeTime = zapcore.ISO8601TimeEncoder
	encoder := zapcore.NewConsoleEncoder(encoding)
	core := zapcore.NewCore(encoder, zapcore.AddSync(l.out), level)
	return zap.New(core, zap.WithFatalHook(giveUpHook{gaveUp}), zap.WithPanicHook(giveUpHook{gaveUp})).Named("etcd")
}

// giveUpHook is called with the messages for which etcd would end the process.
type giveUpHook struct{ gaveUp chan<- error }

// OnWrite implements zapcore.CheckWriteHook.
func (h giveUpHook) OnWrite(entry *zapcore.CheckedEntry, fields []zapcore.Field) {
	var text strings.Builder
	text.WriteString(entry.Message)
	for _, field := range fields {
		if err, ok := field.Interface.(error); ok && field.Type == zapcore.ErrorType {
			text.WriteString(": " + err.Error())
		}
	}
	giveUp(h.gaveUp, errors.New(text.String()))
}

// kwok returns ctx with the logger of kwok.
func (l logs) kwok(ctx context.Context) context.Context {
	level := kwoklog.LevelWarn
	if l.level >= 4 {
		level = kwoklog.LevelInfo
	}
	return kwoklog.NewContext(ctx, kwoklog.NewLogger(writer{l.out}, level))
}

// writer hides that a log goes to a terminal, where kwok would print with colours.
type writer struct{ io.Writer }
