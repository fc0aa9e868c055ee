# Work on the streams of a rank.
set xlabel 'time (ms)'
set xrange [0:zp_end]
set yrange [0.4:zp_n_streams + 0.6]
set tmargin 5
set lmargin 18
set title offset 0, 1
unset grid
set ytics scale 0 ()
do for [i = 1:int(zp_n_streams)] {
    set ytics add (zp_stream[i] zp_n_streams - i + 1)
}
do for [i = 1:zp_n_phases] {
    set object rectangle from zp_phase_start[i], graph 0 to zp_phase_end[i], graph 1 behind \
        fc rgb (i % 2 ? '#f3f3f3' : '#e6e6e6') fs solid noborder
    if (zp_phase_end[i] - zp_phase_start[i] > 0.07 * zp_end) {
        set label zp_phase[i] at (zp_phase_start[i] + zp_phase_end[i]) / 2, graph 1.035 center \
            tc rgb '#606060'
    }
}
plot $works using ($5 == 0 ? $1 : NaN):3:1:2:($3 - 0.36):($3 + 0.36):4 with boxxyerror \
         fs solid noborder lc rgb variable notitle, \
     $works using ($5 == 1 ? $1 : NaN):3:1:2:($3 - 0.36):($3 + 0.36):4 with boxxyerror \
         fs solid border lc rgb 'white' lw 0.4 lc rgb variable notitle, \
     for [i = 1:int(zp_n)] keyentry with boxes lc rgb zp_color[i] title zp_kind[i]
