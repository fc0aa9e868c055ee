$parts << EOD
1 0 0.139698386 0x0072b2
1 0.139698386 0.279396772 0xe69f00
2 0 0.186264515 0x0072b2
2 0.186264515 0.37252903 0xe69f00
3 0 0.37252903 0x0072b2
3 0.37252903 0.74505806 0xe69f00
4 0 0.0931322575 0x0072b2
4 0.0931322575 0.186264515 0xe69f00
5 0 0.349245965 0x0072b2
5 0.349245965 0.698491931 0xe69f00
EOD
$totals << EOD
1 0.279396772 0.3
2 0.37252903 0.4
3 0.74505806 0.7
4 0.186264515 0.2
5 0.698491931 0.7
EOD
zp_n = 2.0
array zp_class[2] = ['gathered parameter', 'parameter']
array zp_color[2] = ['#e69f00', '#0072b2']
zp_title = 'wrapping: peak of a rank by tensor class'
zp_axis = 'world.ranks'
zp_capacity = 0.651925802
zp_capacity_text = 'capacity 0.65 GiB'
zp_top = 0.834465027
zp_n_bars = 5.0
zp_longest = 16.0
array zp_bar[5] = ['8 wrap_blocks=1', '8 wrap_blocks=2', '8 wrap_blocks=8', '16 wrap_blocks=1', '16 wrap_blocks=8']
# Shared by all plots.
set border 3 lc rgb '#404040'
set tics nomirror out tc rgb '#404040'
set grid ytics lc rgb '#e4e4e4' lw 1
set key outside right top reverse Left samplen 2.6 spacing 1.15 tc rgb '#202020'
set title zp_title font ',20' tc rgb '#101010'
set lmargin 11
set bmargin 4.5
set style fill solid 1.0 noborder
set style textbox opaque noborder margins 0.6, 0.4
# Peaks side by side, stacked by tensor class.
set ylabel 'peak of a rank (GiB)'
set xlabel zp_axis
set xrange [0.4:zp_n_bars + 0.6]
set yrange [0:zp_top]
zp_line = zp_capacity <= zp_top ? zp_capacity : NaN
zp_tilt = zp_longest * zp_n_bars > 90
set xtics scale 0 ()
do for [i = 1:int(zp_n_bars)] { set xtics add (zp_bar[i] i) }
if (zp_tilt) { set xtics rotate by -35; set bmargin (zp_longest > 40 ? 16 : 5 + 0.3 * zp_longest) }
set style fill solid 1.0 border lc rgb 'white'
zp_half = zp_n_bars < 4 ? 0.25 : 0.36
plot $parts using 1:2:($1 - zp_half):($1 + zp_half):2:3:4 with boxxyerror lc rgb variable lw 1 \
         notitle, \
     for [i = 1:int(zp_n)] keyentry with boxes lc rgb zp_color[i] title zp_class[i], \
     $totals using 1:2:3 with labels offset 0, 0.7 tc rgb '#101010' notitle, \
     zp_capacity > 0 ? zp_line : NaN with lines lc rgb '#c00000' lw 2 dt 2 \
         title (zp_capacity > 0 ? zp_capacity_text : '')
